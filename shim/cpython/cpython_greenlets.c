/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/cpython/cpython_greenlets.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shim/cpython/cpython_gc.h"
#include "shim/cpython/cpython_objects.h"
#include "shim/cpython/cpython_tasks.h"
#include "shim/find_text.h"
#include "shim/sys.h"

#define MODULE "greenlet._greenlet"
#define LIBRARY "/_greenlet."
#define TABLE "greenlet._C_API"
#define SINCE_2_0 "GREENLET_USE_STANDARD_THREADING" /* an attribute of the module */

/* What the table has, by greenlet.h; the functions from IS_MAIN on since 2.0. */
enum { TYPE = 0, EXIT = 2, CURRENT = 4, THROW, SWITCH, IS_MAIN = 8, IS_STARTED, IS_ACTIVE };

typedef void *switch_function(void *greenlet, void *arguments, void *names);
typedef void *throw_function(void *greenlet, void *arguments);
typedef void *table_throw_function(void *greenlet, void *type, void *value, void *traceback);

/* Complete once one of the methods is replaced. */
static struct {
	void *type, *exit;
	void *(*current)(void);
	int (*is_main)(void *greenlet), (*is_started)(void *greenlet), (*is_active)(void *greenlet);
	void *context_of, *run_of; /* the attributes, as the package itself has them */
	switch_function *next_switch, *next_table_switch;
	throw_function *next_throw;
	table_throw_function *next_table_throw;
} greenlets;

static const struct cpython_objects *const python = &torsh_cpython_objects;
static const struct cpython_greenlet_watcher *_Atomic watcher;
static _Atomic bool has_tasks;

/* The greenlet that runs, or to which that is about to switch: only compared. */
static _Thread_local const void *running;

/* ---- one that starts ------------------------------------------------------------------------- */

/* An attribute of a greenlet, whatever a subclass calls so; NULL: none. Owned. */
static void *attribute_of(void *attribute, void *greenlet)
{
	void *value = python->PyObject_CallFunctionObjArgs(attribute, greenlet,
							   torsh_cpython_type_of(greenlet), NULL);

	torsh_cpython_api.PyErr_Clear();
	return value;
}

/* Whether objects of the type have that attribute, and none of the program's code computes it. */
static bool has_attribute(void *type, const char *name)
{
	const struct cpython_api *api = &torsh_cpython_api;
	void *attribute = api->PyObject_GetAttrString(type, name);
	bool is_plain =
		attribute && strcmp(torsh_cpython_name_of_type(torsh_cpython_type_of(attribute)),
				    "property") != 0;

	api->Py_DecRef(attribute);
	api->PyErr_Clear();
	return is_plain;
}

/* What it calls: gevent's have it as _run, else a class of the program's, or who made it. Owned. */
static void *run_of(void *greenlet)
{
	const struct cpython_api *api = &torsh_cpython_api;
	void *type = torsh_cpython_type_of(greenlet), *run = NULL;

	if (type != greenlets.type && has_attribute(type, "_run"))
		return api->PyObject_GetAttrString(greenlet, "_run");
	if (type != greenlets.type && has_attribute(type, "run"))
		run = api->PyObject_GetAttrString(type, "run");
	if (run && torsh_cpython_type_of(run) == python->PyFunction_Type)
		return run;
	api->Py_DecRef(run);
	return attribute_of(greenlets.run_of, greenlet);
}

/* The text belongs to what is called, or to the type. */
static void describe(const void *object, struct task_begin *begin)
{
	void *greenlet = (void *)(uintptr_t)object, *run = run_of(greenlet);

	torsh_cpython_api.PyErr_Clear();
	begin->name = run ? torsh_cpython_name_of_callable(run)
			  : torsh_cpython_name_of_type(torsh_cpython_type_of(greenlet));
	torsh_cpython_api.Py_DecRef(run);
}

/* The request in whose context it starts; 0: none. */
static uint64_t request_of(void *greenlet)
{
	void *context = attribute_of(greenlets.context_of, greenlet);
	uint64_t request = 0;

	if (context && torsh_cpython_type_of(context) == python->PyContext_Type)
		request = torsh_cpython_request_in(context);
	torsh_cpython_api.Py_DecRef(context);
	return request;
}

static void consider(const struct cpython_greenlet_watcher *to, void *target)
{
	struct task_object object = {.object = target, .identity = target, .kind = TASK_GREENLET};
	bool is_main = greenlets.is_main(target),
	     is_new = !is_main && !greenlets.is_started(target);
	bool with_tasks = atomic_load_explicit(&has_tasks, memory_order_relaxed);

	/* It turns back to its own when its call returns; one that ended doesn't go on at all. */
	if (!is_new && (!greenlets.is_active(target) || (with_tasks && to->is_known(&object))))
		return;
	if (is_new)
		object.request = request_of(target);
	/* One that switched before that was followed won't turn back by itself. */
	if (!with_tasks || is_main)
		to->turn(object.request);
	else
		to->start(&object, describe);
}

/* ---- switches -------------------------------------------------------------------------------- */

/* A call of a greenlet that switches to another one, kept on the stack of the first. */
struct departure {
	const struct cpython_greenlet_watcher *to; /* NULL: not followed */
	const void *here; /* where the call returns */
	uint64_t former; /* what the thread is for there */
};

static struct departure depart(void *target)
{
	struct departure departure = {0};
	void *here;

	if (torsh_cpython_api.PyErr_Occurred() || !target ||
	    !python->PyType_IsSubtype(torsh_cpython_type_of(target), greenlets.type))
		return departure;
	here = greenlets.current();
	torsh_cpython_api.PyErr_Clear();
	if (!here)
		return departure;
	/* It lasts as long as it runs; a reference on its own stack would keep it for ever. */
	torsh_cpython_api.Py_DecRef(here);
	departure.here = here;
	departure.to = atomic_load_explicit(&watcher, memory_order_relaxed);
	departure.former = departure.to->current();
	consider(departure.to, target);
	running = target;
	return departure;
}

/* Whether the greenlet goes on only to be freed: the one that ran has not left. */
static bool is_killed(const void *result)
{
	return !result && torsh_cpython_api.PyErr_Occurred() &&
	       python->PyErr_ExceptionMatches(greenlets.exit);
}

/* The call for target returned, in the greenlet that made it. */
static void arrive(const struct departure *departure, void *target, const void *result)
{
	const void *last = running;

	if (!departure->to)
		return;
	if (last != departure->here && is_killed(result)) {
		departure->to->stop(departure->here);
		return;
	}
	running = departure->here;
	departure->to->turn(departure->former);
	/* Its caller has the target, also if that ended; another thread's is active. */
	if (last != departure->here && (last != target || !greenlets.is_active(target)))
		departure->to->stop(last);
}

static void *switch_method(void *self, void *arguments, void *names)
{
	struct departure departure = depart(self);
	void *result = greenlets.next_switch(self, arguments, names);

	arrive(&departure, self, result);
	return result;
}

static void *throw_method(void *self, void *arguments)
{
	struct departure departure = depart(self);
	void *result = greenlets.next_throw(self, arguments);

	arrive(&departure, self, result);
	return result;
}

static void *table_switch(void *self, void *arguments, void *names)
{
	struct departure departure = depart(self);
	void *result = greenlets.next_table_switch(self, arguments, names);

	arrive(&departure, self, result);
	return result;
}

static void *table_throw(void *self, void *type, void *value, void *traceback)
{
	struct departure departure = depart(self);
	void *result = greenlets.next_table_throw(self, type, value, traceback);

	arrive(&departure, self, result);
	return result;
}

/* ---- the package ----------------------------------------------------------------------------- */

/* What reads an attribute of the type's objects; NULL: it has none. Owned. */
static void *reader_of(const char *name)
{
	const struct cpython_api *api = &torsh_cpython_api;
	void *attribute = api->PyObject_GetAttrString(greenlets.type, name);
	void *reader = attribute ? api->PyObject_GetAttrString(attribute, "__get__") : NULL;

	api->Py_DecRef(attribute);
	return reader;
}

/* The table of the C API; NULL: this version is too old. */
static void **find_table(void *module)
{
	const struct cpython_api *api = &torsh_cpython_api;
	void *since = api->PyObject_GetAttrString(module, SINCE_2_0);
	void *capsule = since ? api->PyObject_GetAttrString(module, "_C_API") : NULL;
	void **table = capsule ? python->PyCapsule_GetPointer(capsule, TABLE) : NULL;

	/* The module has it. */
	api->Py_DecRef(capsule);
	api->Py_DecRef(since);
	return table;
}

static bool read_table(void *const *table)
{
	greenlets.type = table[TYPE];
	greenlets.exit = table[EXIT];
	memcpy(&greenlets.current, &table[CURRENT], sizeof(*table));
	memcpy(&greenlets.is_main, &table[IS_MAIN], sizeof(*table));
	memcpy(&greenlets.is_started, &table[IS_STARTED], sizeof(*table));
	memcpy(&greenlets.is_active, &table[IS_ACTIVE], sizeof(*table));
	memcpy(&greenlets.next_table_switch, &table[SWITCH], sizeof(*table));
	memcpy(&greenlets.next_table_throw, &table[THROW], sizeof(*table));
	greenlets.context_of = reader_of("gr_context");
	greenlets.run_of = reader_of("run");
	return greenlets.context_of && greenlets.run_of;
}

static bool replace(void *module)
{
	void **table = find_table(module);
	struct cpython_method *method, *throw;

	if (!table || !torsh_sys_is_writable(table) || !read_table(table))
		return false;
	method = torsh_cpython_method_of(greenlets.type, "switch");
	throw = torsh_cpython_method_of(greenlets.type, "throw");
	if (!torsh_cpython_method_is_replaceable(method, CPYTHON_KEYWORD_TUPLE) ||
	    !torsh_cpython_method_is_replaceable(throw, CPYTHON_TUPLE))
		return false;
	torsh_cpython_method_replace(method, (void *)switch_method, &greenlets.next_switch);
	torsh_cpython_method_replace(throw, (void *)throw_method, &greenlets.next_throw);
	__atomic_store_n(&table[SWITCH], (void *)table_switch, __ATOMIC_RELEASE);
	__atomic_store_n(&table[THROW], (void *)table_throw, __ATOMIC_RELEASE);
	return true;
}

static bool follow_module(const struct cpython_greenlet_watcher *to, bool with_tasks)
{
	static _Atomic bool is_tried, is_followed;
	void *module = torsh_cpython_module(MODULE);

	if (!module)
		return false;
	if (atomic_exchange_explicit(&is_tried, true, memory_order_relaxed))
		return atomic_load_explicit(&is_followed, memory_order_relaxed);
	atomic_store_explicit(&watcher, to, memory_order_relaxed);
	if (torsh_cpython_objects_are_known() && replace(module))
		atomic_store_explicit(&is_followed, true, memory_order_relaxed);
	else if (with_tasks)
		to->impossible();
	torsh_cpython_api.PyErr_Clear();
	return atomic_load_explicit(&is_followed, memory_order_relaxed);
}

bool torsh_cpython_greenlets_follow(const struct cpython_greenlet_watcher *to, bool with_tasks)
{
	if (!torsh_cpython_api_is_ready() || !torsh_cpython_objects_find() ||
	    !follow_module(to, with_tasks))
		return false;
	if (with_tasks)
		atomic_store_explicit(&has_tasks, true, memory_order_relaxed);
	return true;
}

/* ---- its import ------------------------------------------------------------------------------ */

static const struct cpython_greenlet_watcher *_Atomic requested;
static _Atomic bool is_loading; /* and not followed yet */

static int follow_pending(void *unused)
{
	(void)unused;
	/* If another thread is still importing it, the next library that is opened tries again. */
	if (torsh_cpython_greenlets_follow(atomic_load_explicit(&requested, memory_order_relaxed),
					   true))
		atomic_store_explicit(&is_loading, false, memory_order_relaxed);
	return 0;
}

void torsh_cpython_greenlets_watch(const struct cpython_greenlet_watcher *to)
{
	if (atomic_load_explicit(&requested, memory_order_relaxed))
		return;
	atomic_store_explicit(&requested, to, memory_order_relaxed);
	if (torsh_cpython_add_pending_call(follow_pending))
		atomic_store_explicit(&requested, NULL, memory_order_relaxed);
}

void torsh_cpython_greenlets_loading(const char *path)
{
	if (!atomic_load_explicit(&requested, memory_order_relaxed))
		return;
	if (path && torsh_find_text(path, LIBRARY))
		atomic_store_explicit(&is_loading, true, memory_order_relaxed);
	if (__builtin_expect(atomic_load_explicit(&is_loading, memory_order_relaxed), 0))
		torsh_cpython_add_pending_call(follow_pending);
}
