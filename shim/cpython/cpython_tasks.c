/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/cpython/cpython_tasks.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shim/cpython/cpython_api.h"
#include "shim/cpython/cpython_gc.h"
#include "shim/find_text.h"
#include "shim/loader/objects.h"
#include "shim/sys.h"

#define METHODS_AT 232u /* PyTypeObject.tp_methods, from 3.8 to 3.15 */
#define NAME_AT 24u /* PyTypeObject.tp_name */
#define HEAD_BYTES 16u /* PyObject */
#define HEAD_MORE 16u /* of each object, without a global lock */
#define METHODS_MAX 32u
#define RUN_FLAGS 0x82 /* METH_FASTCALL | METH_KEYWORDS */
#define GET_FLAGS 0x282 /* METH_METHOD besides */
#define PARTIALS_MAX 8 /* in each other */

typedef void *run_function(void *self, void *const *arguments, intptr_t n, void *names);
typedef void *get_function(void *self, void *type, void *const *arguments, intptr_t n, void *names);

/* Complete once next_run is set. */
static struct {
#define TASK_API(result, name, parameters) result(*name) parameters;
#define TASK_OBJECT(name) void *name;
#include "shim/cpython/cpython_tasks.def"
#undef TASK_API
#undef TASK_OBJECT
	size_t more; /* HEAD_MORE, or 0 */
} python;

static const struct cpython_task_watcher *_Atomic watcher;
static run_function *_Atomic next_run; /* NULL: contexts aren't followed */
static void *_Atomic variable; /* NULL: none */
static _Atomic bool has_tasks; /* those of asyncio count */
/* Of _asyncio in the main interpreter, once a task ran. */
static struct {
	void *type, *get_coro, *get_name, *done;
	_Atomic bool is_there;
} task_methods;

/* ---- objects --------------------------------------------------------------------------------- */

static void *type_of(void *object)
{
	void *type = torsh_cpython_api.PyObject_Type(object);

	/* The object has it. */
	torsh_cpython_api.Py_DecRef(type);
	return type;
}

static const char *name_of_type(const void *type)
{
	return *(const char *const *)((const char *)type + NAME_AT + python.more);
}

/* The first field of an object. */
static void *first_of(const void *object)
{
	return *(void *const *)((const char *)object + HEAD_BYTES + python.more);
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), n_end = strlen(end);

	return n >= n_end && !strcmp(text + n - n_end, end);
}

/* The methods of asyncio's tasks; false: it isn't loaded. */
static bool find_methods(void)
{
	const struct cpython_api *api = &torsh_cpython_api;
	void *module = python.PyDict_GetItemString(python.PyImport_GetModuleDict(), "_asyncio");
	void *type;

	/* Pairs with the release below. */
	if (atomic_load_explicit(&task_methods.is_there, memory_order_acquire))
		return true;
	type = module ? api->PyObject_GetAttrString(module, "Task") : NULL;
	if (!type)
		return false;
	task_methods.type = type;
	task_methods.get_coro = api->PyObject_GetAttrString(type, "get_coro");
	task_methods.get_name = api->PyObject_GetAttrString(type, "get_name");
	task_methods.done = api->PyObject_GetAttrString(type, "done");
	if (!task_methods.get_coro || !task_methods.get_name || !task_methods.done)
		return false;
	atomic_store_explicit(&task_methods.is_there, true, memory_order_release);
	return true;
}

/* The task whose step or wake-up this callable is; NULL: it is neither. Borrowed. */
static void *task_of(void *callable)
{
	void *type = type_of(callable), *task = NULL;
	const char *name = name_of_type(type);

	if (type == python.PyCFunction_Type)
		task = python.PyCFunction_GetSelf(callable);
	else if (ends_with(name, "TaskStepMethWrapper") || ends_with(name, "TaskWakeupMethWrapper"))
		task = first_of(callable);
	if (!task || !find_methods())
		return NULL;
	return python.PyType_IsSubtype(type_of(task), task_methods.type) ? task : NULL;
}

/* ---- what is about to run -------------------------------------------------------------------- */

/* The request in the context; 0: none. */
static uint64_t request_in(void *context)
{
	void *key = atomic_load_explicit(&variable, memory_order_relaxed);
	void *value = NULL, *number = NULL;
	uint64_t request = 0;

	if (key && python.PySequence_Contains(context, key) == 1)
		value = python.PyObject_GetItem(context, key);
	if (value && type_of(value) == python.PyTuple_Type)
		number = python.PyTuple_GetItem(value, 0);
	if (number)
		request = python.PyLong_AsUnsignedLongLong(number);
	torsh_cpython_api.Py_DecRef(value);
	if (torsh_cpython_api.PyErr_Occurred()) {
		torsh_cpython_api.PyErr_Clear();
		return 0;
	}
	return request;
}

/* The texts belong to what the task has. */
static void describe(const void *object, struct task_begin *begin)
{
	const struct cpython_api *api = &torsh_cpython_api;
	void *task = (void *)(uintptr_t)object;
	void *coroutine = python.PyObject_CallFunctionObjArgs(task_methods.get_coro, task, NULL);
	void *name = python.PyObject_CallFunctionObjArgs(task_methods.get_name, task, NULL);
	void *type = coroutine ? type_of(coroutine) : NULL, *qualified = NULL;

	/* Attributes of other types may be Python. */
	if (type && (type == python.PyCoro_Type || type == python.PyGen_Type))
		qualified = api->PyObject_GetAttrString(coroutine, "__qualname__");
	if (qualified)
		begin->name = api->PyUnicode_AsUTF8(qualified);
	else if (type)
		begin->name = name_of_type(type);
	if (name)
		begin->task = api->PyUnicode_AsUTF8(name);
	/* The coroutine and the task have them, too. */
	api->Py_DecRef(qualified);
	api->Py_DecRef(name);
	api->Py_DecRef(coroutine);
	api->PyErr_Clear();
}

static struct task_object object_of(void *context, void *callable)
{
	struct task_object object = {.kind = TASK_ASYNCIO, .request = request_in(context)};
	void *task, *coroutine;

	if (!atomic_load_explicit(&has_tasks, memory_order_relaxed))
		return object;
	task = task_of(callable);
	if (!task)
		return object;
	coroutine = python.PyObject_CallFunctionObjArgs(task_methods.get_coro, task, NULL);
	object.object = task;
	object.identity = coroutine;
	torsh_cpython_api.Py_DecRef(coroutine);
	torsh_cpython_api.PyErr_Clear();
	return object;
}

static bool is_done(const struct task_object *object)
{
	void *task = (void *)(uintptr_t)object->object, *answer;
	bool is_so;

	if (!task || torsh_cpython_api.PyErr_Occurred())
		return false;
	answer = python.PyObject_CallFunctionObjArgs(task_methods.done, task, NULL);
	is_so = answer && python.PyObject_IsTrue(answer) == 1;
	torsh_cpython_api.Py_DecRef(answer);
	torsh_cpython_api.PyErr_Clear();
	return is_so;
}

/* Context.run(callable, ...) */
static void *run(void *self, void *const *arguments, intptr_t n, void *names)
{
	run_function *next = atomic_load_explicit(&next_run, memory_order_relaxed);
	const struct cpython_task_watcher *to =
		atomic_load_explicit(&watcher, memory_order_relaxed);
	struct task_object object;
	struct task_visit visit;
	void *result;

	if (n < 1 || torsh_cpython_api.PyErr_Occurred())
		return next(self, arguments, n, names);
	object = object_of(self, arguments[0]);
	to->enter(&visit, &object, describe);
	result = next(self, arguments, n, names);
	to->leave(&visit, &object, is_done(&object));
	return result;
}

/* ---- the table ------------------------------------------------------------------------------- */

static bool find_api(void)
{
	if (!torsh_cpython_api_find())
		return false;
#define TASK_API(result, name, parameters)                  \
	*(void **)&python.name = torsh_objects_find(#name); \
	if (!python.name)                                   \
		return false;
#define TASK_OBJECT(name) TASK_API(, name, )
#include "shim/cpython/cpython_tasks.def"
#undef TASK_API
#undef TASK_OBJECT
	return true;
}

/* Whether types have the layout that is read here: "3.13.0 (main, ..." of a known version. */
static bool knows_layout(void)
{
	const char *version = python.Py_GetVersion();
	int minor = 0;

	if (strncmp(version, "3.", 2))
		return false;
	for (const char *at = version + 2; *at >= '0' && *at <= '9' && minor < 100; at++)
		minor = 10 * minor + (*at - '0');
	python.more = torsh_find_text(version, "free-threading") ? HEAD_MORE : 0;
	return minor >= 8 && minor <= 15;
}

/* The entry of a method in a type's table. */
static struct cpython_method *method_of(void *type, const char *name)
{
	struct cpython_method *methods =
		*(struct cpython_method **)((char *)type + METHODS_AT + python.more);

	for (uint32_t i = 0; methods && i < METHODS_MAX && methods[i].name; i++) {
		if (!strcmp(methods[i].name, name))
			return &methods[i];
	}
	return NULL;
}

static bool replace_run(void)
{
	struct cpython_method *method;
	run_function *next;

	if (atomic_load_explicit(&next_run, memory_order_relaxed))
		return true;
	if (!find_api() || !knows_layout())
		return false;
	method = method_of(python.PyContext_Type, "run");
	if (!method || method->flags != RUN_FLAGS || !torsh_sys_is_writable(&method->function))
		return false;
	memcpy(&next, &method->function, sizeof(next));
	atomic_store_explicit(&next_run, next, memory_order_release);
	__atomic_store_n(&method->function, (cpython_function *)(void *)run, __ATOMIC_RELEASE);
	return true;
}

bool torsh_cpython_tasks_follow(const struct cpython_task_watcher *to, void *of, bool with_tasks)
{
	atomic_store_explicit(&watcher, to, memory_order_relaxed);
	if (!torsh_cpython_api_is_ready() || !replace_run())
		return false;
	if (of && of != atomic_load_explicit(&variable, memory_order_relaxed)) {
		torsh_cpython_api.Py_IncRef(of);
		atomic_store_explicit(&variable, of, memory_order_relaxed);
	}
	if (with_tasks)
		atomic_store_explicit(&has_tasks, true, memory_order_relaxed);
	return true;
}

static int run_pending(void *unused)
{
	const struct cpython_task_watcher *to =
		atomic_load_explicit(&watcher, memory_order_relaxed);

	(void)unused;
	if (!torsh_cpython_tasks_follow(to, NULL, true))
		to->impossible();
	/* An executor may have its threads, where the recording began late. */
	torsh_cpython_works_follow(to);
	return 0;
}

void torsh_cpython_tasks_watch(const struct cpython_task_watcher *to)
{
	static _Atomic bool is_requested;

	if (atomic_load_explicit(&is_requested, memory_order_relaxed) ||
	    atomic_exchange_explicit(&is_requested, true, memory_order_relaxed))
		return;
	atomic_store_explicit(&watcher, to, memory_order_relaxed);
	if (torsh_cpython_add_pending_call(run_pending))
		atomic_store_explicit(&is_requested, false, memory_order_relaxed);
}

/* ---- work items ------------------------------------------------------------------------------ */

/* Complete once the method's function is replaced. */
static run_function *next_put;
static get_function *next_get, *next_get_nowait;

/* The item that the thread works for: from which queue it came. */
static _Thread_local struct {
	const void *queue, *item; /* NULL: none */
	struct task_visit visit;
} work;

/* Objects of that class have no Python code that runs where an attribute is read. */
static bool is_work(void *object, struct task_object *work_item)
{
	void *future;

	if (strcmp(name_of_type(type_of(object)), "_WorkItem") != 0)
		return false;
	future = torsh_cpython_api.PyObject_GetAttrString(object, "future");
	*work_item =
		(struct task_object){.object = object, .identity = future, .kind = TASK_WORK_ITEM};
	torsh_cpython_api.Py_DecRef(future);
	torsh_cpython_api.PyErr_Clear();
	return future != NULL;
}

/* What it calls; NULL: not known. The item has it. */
static void *function_of(void *item)
{
	void *function = torsh_cpython_api.PyObject_GetAttrString(item, "fn"), *task;

	torsh_cpython_api.PyErr_Clear();
	if (!function) {
		/* From 3.14 on: (function, arguments, keywords). */
		task = torsh_cpython_api.PyObject_GetAttrString(item, "task");
		function = task && type_of(task) == python.PyTuple_Type
				   ? python.PyTuple_GetItem(task, 0)
				   : NULL;
		torsh_cpython_api.Py_DecRef(task);
		return function;
	}
	torsh_cpython_api.Py_DecRef(function);
	return function;
}

static void describe_work(const void *object, struct task_begin *begin)
{
	const struct cpython_api *api = &torsh_cpython_api;
	void *function = function_of((void *)(uintptr_t)object), *type = NULL, *name = NULL;

	for (int i = 0; function && i < PARTIALS_MAX; i++) {
		type = type_of(function);
		if (strcmp(name_of_type(type), "functools.partial") != 0)
			break;
		function = api->PyObject_GetAttrString(function, "func");
		api->Py_DecRef(function);
	}
	/* Attributes of other types may be Python. */
	if (function && (type == python.PyFunction_Type || type == python.PyMethod_Type ||
			 type == python.PyCFunction_Type || type == python.PyMethodDescr_Type))
		name = api->PyObject_GetAttrString(function, "__qualname__");
	if (name)
		begin->name = api->PyUnicode_AsUTF8(name);
	else if (function)
		begin->name = name_of_type(type);
	/* The function has it, too. */
	api->Py_DecRef(name);
	api->PyErr_Clear();
}

static const struct cpython_task_watcher *watcher_of_works(void)
{
	return torsh_cpython_api.PyErr_Occurred()
		       ? NULL
		       : atomic_load_explicit(&watcher, memory_order_relaxed);
}

/* The thread takes the next item from its queue. */
static void finish_work(const void *queue)
{
	const struct cpython_task_watcher *to = watcher_of_works();

	if (work.queue != queue || !to)
		return;
	to->finish(&work.visit, work.item);
	work.queue = work.item = NULL;
}

static void *take_work(void *queue, void *item)
{
	const struct cpython_task_watcher *to = item ? watcher_of_works() : NULL;
	struct task_object object;

	if (!to || work.queue || !is_work(item, &object))
		return item;
	work.queue = queue;
	work.item = item;
	to->take(&work.visit, &object, describe_work);
	return item;
}

static void *put_work(void *self, void *const *arguments, intptr_t n, void *names)
{
	const struct cpython_task_watcher *to = watcher_of_works();
	struct task_object object;

	if (to && n > 0 && is_work(arguments[0], &object))
		to->submit(&object, describe_work);
	return next_put(self, arguments, n, names);
}

static void *get_work(void *self, void *type, void *const *arguments, intptr_t n, void *names)
{
	finish_work(self);
	return take_work(self, next_get(self, type, arguments, n, names));
}

static void *get_work_nowait(void *self, void *type, void *const *arguments, intptr_t n,
			     void *names)
{
	finish_work(self);
	return take_work(self, next_get_nowait(self, type, arguments, n, names));
}

static bool is_replaceable(const struct cpython_method *method, int flags)
{
	return method && method->flags == flags && torsh_sys_is_writable(&method->function);
}

static void replace(struct cpython_method *method, void *function, void *next)
{
	memcpy(next, &method->function, sizeof(method->function));
	__atomic_store_n(&method->function, (cpython_function *)function, __ATOMIC_RELEASE);
}

/* Returns false if the type isn't as it is known. */
static bool replace_queue(void *type)
{
	struct cpython_method *put = method_of(type, "put"), *get = method_of(type, "get"),
			      *nowait = method_of(type, "get_nowait");

	if (!is_replaceable(put, RUN_FLAGS) || !is_replaceable(get, GET_FLAGS) ||
	    !is_replaceable(nowait, GET_FLAGS))
		return false;
	replace(put, (void *)put_work, &next_put);
	replace(get, (void *)get_work, &next_get);
	replace(nowait, (void *)get_work_nowait, &next_get_nowait);
	return true;
}

void torsh_cpython_works_follow(const struct cpython_task_watcher *to)
{
	static _Atomic bool is_done;
	void *module, *type;

	if (atomic_load_explicit(&is_done, memory_order_relaxed) || !torsh_cpython_api_is_ready() ||
	    !find_api())
		return;
	module = python.PyDict_GetItemString(python.PyImport_GetModuleDict(), "_queue");
	if (!module || atomic_exchange_explicit(&is_done, true, memory_order_relaxed))
		return;
	atomic_store_explicit(&watcher, to, memory_order_relaxed);
	type = torsh_cpython_api.PyObject_GetAttrString(module, "SimpleQueue");
	if (!type || !knows_layout() || !replace_queue(type))
		to->no_works();
	torsh_cpython_api.PyErr_Clear();
}
