/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/cpython/cpython_objects.h"

#include <string.h>

#include "shim/find_text.h"
#include "shim/loader/objects.h"
#include "shim/sys.h"

#define METHODS_AT 232u /* PyTypeObject.tp_methods, from 3.8 to 3.15 */
#define NAME_AT 24u /* PyTypeObject.tp_name */
#define HEAD_BYTES 16u /* PyObject */
#define HEAD_MORE 16u /* of each object, without a global lock */
#define METHODS_MAX 32u
#define PARTIALS_MAX 8 /* in each other */

struct cpython_objects torsh_cpython_objects;

bool torsh_cpython_objects_find(void)
{
	struct cpython_objects *found = &torsh_cpython_objects;

	if (!torsh_cpython_api_find())
		return false;
#define OBJECT_API(result, name, parameters)                \
	*(void **)&found->name = torsh_objects_find(#name); \
	if (!found->name)                                   \
		return false;
#define OBJECT(name) OBJECT_API(, name, )
#include "shim/cpython/cpython_objects.def"
#undef OBJECT_API
#undef OBJECT
	return true;
}

/* "3.13.0 (main, ..." of a known version. */
bool torsh_cpython_objects_are_known(void)
{
	const char *version = torsh_cpython_objects.Py_GetVersion();
	int minor = 0;

	if (strncmp(version, "3.", 2))
		return false;
	for (const char *at = version + 2; *at >= '0' && *at <= '9' && minor < 100; at++)
		minor = 10 * minor + (*at - '0');
	torsh_cpython_objects.more_head_bytes =
		torsh_find_text(version, "free-threading") ? HEAD_MORE : 0;
	return minor >= 8 && minor <= 15;
}

void *torsh_cpython_module(const char *name)
{
	return torsh_cpython_objects.PyDict_GetItemString(
		torsh_cpython_objects.PyImport_GetModuleDict(), name);
}

void *torsh_cpython_type_of(void *object)
{
	void *type = torsh_cpython_api.PyObject_Type(object);

	/* The object has it. */
	torsh_cpython_api.Py_DecRef(type);
	return type;
}

static const void *field_of(const void *object, size_t at)
{
	return (const char *)object + at + torsh_cpython_objects.more_head_bytes;
}

const char *torsh_cpython_name_of_type(const void *type)
{
	return *(const char *const *)field_of(type, NAME_AT);
}

void *torsh_cpython_first_of(const void *object)
{
	return *(void *const *)field_of(object, HEAD_BYTES);
}

/* Attributes of other types may be Python. */
static bool has_plain_name(const void *type)
{
	const struct cpython_objects *python = &torsh_cpython_objects;

	return type == python->PyFunction_Type || type == python->PyMethod_Type ||
	       type == python->PyCFunction_Type || type == python->PyMethodDescr_Type;
}

const char *torsh_cpython_name_of_callable(void *callable)
{
	const struct cpython_api *api = &torsh_cpython_api;
	void *type = torsh_cpython_type_of(callable), *name;
	const char *text;

	for (int i = 0;
	     i < PARTIALS_MAX && !strcmp(torsh_cpython_name_of_type(type), "functools.partial");
	     i++) {
		callable = api->PyObject_GetAttrString(callable, "func");
		/* The partial has it. */
		api->Py_DecRef(callable);
		type = torsh_cpython_type_of(callable);
	}
	if (!has_plain_name(type))
		return torsh_cpython_name_of_type(type);
	name = api->PyObject_GetAttrString(callable, "__qualname__");
	text = name ? api->PyUnicode_AsUTF8(name) : NULL;
	/* The callable has it, too. */
	api->Py_DecRef(name);
	api->PyErr_Clear();
	return text;
}

struct cpython_method *torsh_cpython_method_of(void *type, const char *name)
{
	struct cpython_method *methods =
		*(struct cpython_method *const *)field_of(type, METHODS_AT);

	for (uint32_t i = 0; methods && i < METHODS_MAX && methods[i].name; i++) {
		if (!strcmp(methods[i].name, name))
			return &methods[i];
	}
	return NULL;
}

bool torsh_cpython_method_is_replaceable(const struct cpython_method *method, int flags)
{
	return method && method->flags == flags && torsh_sys_is_writable(&method->function);
}

void torsh_cpython_method_replace(struct cpython_method *method, void *function, void *next)
{
	memcpy(next, &method->function, sizeof(method->function));
	__atomic_store_n(&method->function, (cpython_function *)function, __ATOMIC_RELEASE);
}
