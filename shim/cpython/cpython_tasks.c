/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/cpython/cpython_tasks.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shim/cpython/cpython_api.h"
#include "shim/cpython/cpython_gc.h"
#include "shim/cpython/cpython_objects.h"

typedef void *run_function(void *self, void *const *arguments, intptr_t n, void *names);
typedef void *get_function(void *self, void *type, void *const *arguments, intptr_t n, void *names);

static const struct cpython_objects *const python = &torsh_cpython_objects;
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

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), n_end = strlen(end);

	return n >= n_end && !strcmp(text + n - n_end, end);
}

/* The methods of asyncio's tasks; false: it isn't loaded. */
static bool find_methods(void)
{
	const struct cpython_api *api = &torsh_cpython_api;
	void *module = torsh_cpython_module("_asyncio"), *type;

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
	void *type = torsh_cpython_type_of(callable), *task = NULL;
	const char *name = torsh_cpython_name_of_type(type);

	if (type == python->PyCFunction_Type)
		task = python->PyCFunction_GetSelf(callable);
	else if (ends_with(name, "TaskStepMethWrapper") || ends_with(name, "TaskWakeupMethWrapper"))
		task = torsh_cpython_first_of(callable);
	if (!task || !find_methods())
		return NULL;
	return python->PyType_IsSubtype(torsh_cpython_type_of(task), task_methods.type) ? task
											: NULL;
}

/* ---- what is about to run -------------------------------------------------------------------- */

uint64_t torsh_cpython_request_in(void *context)
{
	void *key = atomic_load_explicit(&variable, memory_order_relaxed);
	void *value = NULL, *number = NULL;
	uint64_t request = 0;

	if (key && python->PySequence_Contains(context, key) == 1)
		value = python->PyObject_GetItem(context, key);
	if (value && torsh_cpython_type_of(value) == python->PyTuple_Type)
		number = python->PyTuple_GetItem(value, 0);
	if (number)
		request = python->PyLong_AsUnsignedLongLong(number);
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
	void *coroutine = python->PyObject_CallFunctionObjArgs(task_methods.get_coro, task, NULL);
	void *name = python->PyObject_CallFunctionObjArgs(task_methods.get_name, task, NULL);
	void *type = coroutine ? torsh_cpython_type_of(coroutine) : NULL, *qualified = NULL;

	/* Attributes of other types may be Python. */
	if (type && (type == python->PyCoro_Type || type == python->PyGen_Type))
		qualified = api->PyObject_GetAttrString(coroutine, "__qualname__");
	if (qualified)
		begin->name = api->PyUnicode_AsUTF8(qualified);
	else if (type)
		begin->name = torsh_cpython_name_of_type(type);
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
	struct task_object object = {.kind = TASK_ASYNCIO,
				     .request = torsh_cpython_request_in(context)};
	void *task, *coroutine;

	if (!atomic_load_explicit(&has_tasks, memory_order_relaxed))
		return object;
	task = task_of(callable);
	if (!task)
		return object;
	coroutine = python->PyObject_CallFunctionObjArgs(task_methods.get_coro, task, NULL);
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
	answer = python->PyObject_CallFunctionObjArgs(task_methods.done, task, NULL);
	is_so = answer && python->PyObject_IsTrue(answer) == 1;
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

static bool replace_run(void)
{
	struct cpython_method *method;
	run_function *next;

	if (atomic_load_explicit(&next_run, memory_order_relaxed))
		return true;
	if (!torsh_cpython_objects_find() || !torsh_cpython_objects_are_known())
		return false;
	method = torsh_cpython_method_of(python->PyContext_Type, "run");
	if (!torsh_cpython_method_is_replaceable(method, CPYTHON_KEYWORD_ARRAY))
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

	if (strcmp(torsh_cpython_name_of_type(torsh_cpython_type_of(object)), "_WorkItem") != 0)
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
		function = task && torsh_cpython_type_of(task) == python->PyTuple_Type
				   ? python->PyTuple_GetItem(task, 0)
				   : NULL;
		torsh_cpython_api.Py_DecRef(task);
		return function;
	}
	torsh_cpython_api.Py_DecRef(function);
	return function;
}

static void describe_work(const void *object, struct task_begin *begin)
{
	void *function = function_of((void *)(uintptr_t)object);

	if (function)
		begin->name = torsh_cpython_name_of_callable(function);
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

/* Returns false if the type isn't as it is known. */
static bool replace_queue(void *type)
{
	struct cpython_method *put = torsh_cpython_method_of(type, "put"),
			      *get = torsh_cpython_method_of(type, "get"),
			      *nowait = torsh_cpython_method_of(type, "get_nowait");

	if (!torsh_cpython_method_is_replaceable(put, CPYTHON_KEYWORD_ARRAY) ||
	    !torsh_cpython_method_is_replaceable(get, CPYTHON_TYPED_ARRAY) ||
	    !torsh_cpython_method_is_replaceable(nowait, CPYTHON_TYPED_ARRAY))
		return false;
	torsh_cpython_method_replace(put, (void *)put_work, &next_put);
	torsh_cpython_method_replace(get, (void *)get_work, &next_get);
	torsh_cpython_method_replace(nowait, (void *)get_work_nowait, &next_get_nowait);
	return true;
}

void torsh_cpython_works_follow(const struct cpython_task_watcher *to)
{
	static _Atomic bool is_done;
	void *module, *type;

	if (atomic_load_explicit(&is_done, memory_order_relaxed) || !torsh_cpython_api_is_ready() ||
	    !torsh_cpython_objects_find())
		return;
	module = torsh_cpython_module("_queue");
	if (!module || atomic_exchange_explicit(&is_done, true, memory_order_relaxed))
		return;
	atomic_store_explicit(&watcher, to, memory_order_relaxed);
	type = torsh_cpython_api.PyObject_GetAttrString(module, "SimpleQueue");
	if (!type || !torsh_cpython_objects_are_known() || !replace_queue(type))
		to->no_works();
	torsh_cpython_api.PyErr_Clear();
}
