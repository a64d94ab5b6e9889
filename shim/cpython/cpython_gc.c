/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The list gc.callbacks belongs to the interpreter. It is reached through a module object that is
 * dropped again: `import gc` would leave the name in sys.modules.
 */
#include "shim/cpython/cpython_gc.h"

#include <stdatomic.h>
#include <stddef.h>

#include "shim/cpython/cpython.h"
#include "shim/cpython/cpython_api.h"
#include "shim/loader/objects.h"

#define CAPSULE_NAME "torsh"
#define API_VERSION 1013 /* PYTHON_API_VERSION */

enum gc_state { GC_DETACHED, GC_REQUESTED, GC_ATTACHED, GC_OFF };

static _Atomic int state;
static const struct cpython_gc_watcher *watcher;
static void *none; /* Py_None */
static struct {
	void *generation, *collected, *uncollectable;
} keys; /* of the dictionary that a callback gets */

/* ---- the entry ------------------------------------------------------------------------------- */

static uint64_t read_number(void *dict, void *key)
{
	const struct cpython_api *api = &torsh_cpython_api;
	void *number = api->PyDict_GetItemWithError(dict, key);
	long value = number ? api->PyLong_AsLong(number) : 0;

	return value > 0 ? (uint64_t)value : 0;
}

/* callback(phase, info), with phase "start" or "stop". The program may call it with anything. */
static void *call_entry(void *self, void *const *arguments, intptr_t n)
{
	const struct cpython_api *api = &torsh_cpython_api;
	const char *phase = n == 2 ? api->PyUnicode_AsUTF8(arguments[0]) : NULL;

	(void)self;
	if (phase && phase[0] == 's' && phase[1] == 't' && phase[2] == 'a') {
		watcher->started();
	} else if (phase && phase[0] == 's' && phase[1] == 't') {
		struct cpython_gc_run run = {
			.generation = (uint32_t)read_number(arguments[1], keys.generation),
			.collected = read_number(arguments[1], keys.collected),
			.uncollectable = read_number(arguments[1], keys.uncollectable),
		};

		if (!api->PyErr_Occurred())
			watcher->stopped(&run, __builtin_frame_address(0));
	}
	api->PyErr_Clear();
	api->Py_IncRef(none);
	return none;
}

/* The entry was freed: the program removed it, or the interpreter ends. */
static void drop_entry(void *capsule)
{
	bool is_end = !torsh_cpython_api.Py_IsInitialized();

	(void)capsule;
	if (!is_end)
		watcher->removed();
	atomic_store_explicit(&state, is_end ? GC_DETACHED : GC_OFF, memory_order_relaxed);
}

static void *make_entry(void)
{
	static struct cpython_method method = {
		"torsh_gc_callback", NULL, CPYTHON_ARGUMENT_ARRAY,
		"Reports runs of the garbage collector to the torsh profiler that records this process."};
	const struct cpython_api *api = &torsh_cpython_api;
	void *capsule = api->PyCapsule_New(&state, CAPSULE_NAME, drop_entry), *entry;

	if (!capsule)
		return NULL;
	*(void **)&method.function = (void *)call_entry;
	entry = api->PyCFunction_NewEx(&method, capsule, NULL);
	api->Py_DecRef(capsule);
	return entry;
}

/* ---- the list -------------------------------------------------------------------------------- */

/* A module object outside of sys.modules; NULL after an exception. */
static void *make_module(void)
{
	const struct cpython_api *api = &torsh_cpython_api;
	void *made = api->PyInit_gc(), *type = made ? api->PyObject_Type(made) : NULL,
	     *spec = api->PySys_GetObject("__spec__"), *module;

	api->Py_DecRef(type);
	if (!type || type != torsh_objects_find("PyModuleDef_Type"))
		return made;
	/* From 3.12 on it is a definition, which lasts; of the spec only a name is used. */
	module = spec ? api->PyModule_FromDefAndSpec2(made, spec, API_VERSION) : NULL;
	if (module && api->PyModule_ExecDef(module, made)) {
		api->Py_DecRef(module);
		return NULL;
	}
	return module;
}

static bool append_entry(void)
{
	const struct cpython_api *api = &torsh_cpython_api;
	void *module = make_module();
	void *list = module ? api->PyObject_GetAttrString(module, "callbacks") : NULL;
	void *entry = list ? make_entry() : NULL;
	bool is_there;

	/* From here on the interpreter may drop the entry. */
	atomic_store_explicit(&state, GC_ATTACHED, memory_order_relaxed);
	is_there = entry && !api->PyList_Append(list, entry);
	api->Py_DecRef(entry);
	api->Py_DecRef(list);
	api->Py_DecRef(module);
	return is_there;
}

/* Interned texts, as the collector's own: found by their addresses. */
static bool make_keys(void)
{
	const struct cpython_api *api = &torsh_cpython_api;

	none = torsh_objects_find("_Py_NoneStruct");
	keys.generation = api->PyUnicode_InternFromString("generation");
	keys.collected = api->PyUnicode_InternFromString("collected");
	keys.uncollectable = api->PyUnicode_InternFromString("uncollectable");
	return none && keys.generation && keys.collected && keys.uncollectable;
}

/* Up to 3.11 a pending call may run in a second interpreter of the main thread. */
static bool is_main_interpreter(void)
{
	void *(*current)(void) = NULL, *(*main)(void) = NULL;

	*(void **)&current = torsh_objects_find("PyInterpreterState_Get");
	*(void **)&main = torsh_objects_find("PyInterpreterState_Main");
	return !current || !main || current() == main();
}

/*
 * Without collections: what is made here for a moment must not bring the next one forward. 3.8 and
 * 3.9 have no function for that.
 */
static bool attach(void)
{
	int (*disable)(void) = NULL, (*enable)(void) = NULL;
	bool was_on, is_there;

	*(void **)&disable = torsh_objects_find("PyGC_Disable");
	*(void **)&enable = torsh_objects_find("PyGC_Enable");
	was_on = disable && enable && disable();
	is_there = make_keys() && append_entry();
	if (was_on)
		enable();
	torsh_cpython_api.PyErr_Clear();
	return is_there;
}

static int run_pending(void *unused)
{
	bool is_there;

	(void)unused;
	if (!torsh_cpython_api_is_ready() || !is_main_interpreter()) {
		atomic_store_explicit(&state, GC_DETACHED, memory_order_relaxed);
		return 0;
	}
	is_there = attach();
	if (!is_there)
		atomic_store_explicit(&state, GC_OFF, memory_order_relaxed);
	watcher->attached(is_there);
	return 0;
}

/* ---- the request ----------------------------------------------------------------------------- */

int torsh_cpython_add_pending_call(int (*call)(void *))
{
	/* Pairs with the release in torsh_cpython_consider. */
	if (atomic_load_explicit(&torsh_cpython_is_there, memory_order_acquire))
		return torsh_cpython.is_initialized() ? torsh_cpython.add_pending_call(call, NULL)
						      : -1;
	return torsh_cpython_api_find() && torsh_cpython_api.Py_IsInitialized()
		       ? torsh_cpython_api.Py_AddPendingCall(call, NULL)
		       : -1;
}

void torsh_cpython_gc_watch(const struct cpython_gc_watcher *with)
{
	int detached = GC_DETACHED;

	if (atomic_load_explicit(&state, memory_order_relaxed) != GC_DETACHED ||
	    !atomic_compare_exchange_strong_explicit(&state, &detached, GC_REQUESTED,
						     memory_order_relaxed, memory_order_relaxed))
		return;
	watcher = with;
	if (torsh_cpython_add_pending_call(run_pending))
		atomic_store_explicit(&state, GC_DETACHED, memory_order_relaxed);
}
