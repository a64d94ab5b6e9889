/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/cpython/cpython_api.h"

#include <stdbool.h>
#include <stddef.h>

#include "shim/loader/objects.h"

#define FILE_INPUT 257 /* Py_file_input */

struct cpython_api torsh_cpython_api;

static int find_all(struct cpython_api *api)
{
#define API(result, name, parameters)                     \
	*(void **)&api->name = torsh_objects_find(#name); \
	if (!api->name)                                   \
		return -1;
#include "shim/cpython/cpython_api.def"
#undef API
	return 0;
}

bool torsh_cpython_api_find(void)
{
	struct cpython_api found = {0};

	if (torsh_cpython_api.PyUnicode_AsUTF8)
		return true;
	if (find_all(&found))
		return false;
	torsh_cpython_api = found;
	return true;
}

bool torsh_cpython_api_is_ready(void)
{
	return torsh_cpython_api_find() && torsh_cpython_api.PyGILState_Check() &&
	       !torsh_cpython_api.PyErr_Occurred();
}

static int put(void *dict, const char *name, void *owned)
{
	const struct cpython_api *api = &torsh_cpython_api;
	int result = owned ? api->PyDict_SetItemString(dict, name, owned) : -1;

	if (owned)
		api->Py_DecRef(owned);
	return result;
}

static void *make_namespace(struct cpython_method *methods)
{
	const struct cpython_api *api = &torsh_cpython_api;
	void *dict = api->PyDict_New();

	if (!dict)
		return NULL;
	if (api->PyDict_SetItemString(dict, "__builtins__", api->PyEval_GetBuiltins()))
		goto drop;
	for (struct cpython_method *method = methods; method->name; method++)
		if (put(dict, method->name, api->PyCFunction_NewEx(method, NULL, NULL)))
			goto drop;
	return dict;
drop:
	api->Py_DecRef(dict);
	return NULL;
}

int torsh_cpython_api_run(const char *source, const char *file, struct cpython_method *methods)
{
	const struct cpython_api *api = &torsh_cpython_api;
	void *code = api->Py_CompileString(source, file, FILE_INPUT), *namespace = NULL,
	     *result = NULL;

	if (code)
	namespace = make_namespace(methods);
	if (namespace)
		result = api->PyEval_EvalCode(code, namespace, namespace);
	api->Py_DecRef(result);
	api->Py_DecRef(namespace);
	api->Py_DecRef(code);
	api->PyErr_Clear();
	return result ? 0 : -1;
}
