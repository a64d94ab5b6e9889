/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The collector of requests and tasks: when they begin and end, and at which moments a thread turns
 * from one to another, with the processor time that it has used until then. Between two turns all
 * that the thread does counts for one of them. These events have no stacks.
 */
#include "shim/ranges/task_calls.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "agent/process/config.h"
#include "agent/process/process.h"
#include "agent/producer/label.h"
#include "agent/producer/producer.h"
#include "collectors/tasks/known_tasks.h"
#include "collectors/tasks/task_events.h"
#include "collectors/tasks/traceparent.h"
#include "shim/cpython/cpython_greenlets.h"
#include "shim/cpython/cpython_tasks.h"
#include "shim/libc/cpu_timer.h"

static _Thread_local struct {
	uint64_t current;
	/* with a task of the interpreter: the request in whose context it began */
	uint64_t inherited;
	uint32_t n_visits; /* contexts that are entered and not left */
	int mark; /* of the process that this is about: another one after fork */
} works;

/* A forked child's recording has none of the parent's requests. */
static void settle(void)
{
	int mark = torsh_process ? torsh_process_mark() : 0;

	if (works.mark == mark)
		return;
	works.mark = mark;
	works.current = works.inherited = 0;
}

/* Inlined, as torsh_producer_enter requires. */
static inline __attribute__((always_inline)) struct producer *enter(int *saved)
{
	*saved = errno;
	return torsh_producer_enter();
}

static void leave(struct producer *producer, int saved)
{
	if (producer)
		torsh_producer_leave(producer);
	errno = saved;
}

bool torsh_tasks_are_wanted(void)
{
	int saved;
	struct producer *producer = enter(&saved);

	leave(producer, saved);
	return producer != NULL;
}

struct labels {
	uint32_t name, task;
};

static uint32_t label_of(const char *text)
{
	return text ? torsh_label(text, strnlen(text, LABEL_BUFFER_BYTES)) : 0;
}

/* Not inlined: the event isn't on the stack while its labels are made. */
static __attribute__((noinline)) void
send_begin(struct producer *producer, const struct task_begin *task, struct labels labels)
{
	struct event event = {
		.id = EVENT_TASK,
		.task = {.number = task->number,
			 .kind = task->kind,
			 .name = labels.name,
			 .task = labels.task,
			 .parent = task->parent,
			 .flags = task->flags},
	};

	torsh_traceparent_read(task->traceparent, task->n_traceparent, &event.task);
	torsh_producer_event(producer, &event, NULL);
}

void torsh_task_begin(const struct task_begin *task)
{
	int saved;
	struct producer *producer = enter(&saved);

	if (producer)
		send_begin(producer, task,
			   (struct labels){label_of(task->name), label_of(task->task)});
	leave(producer, saved);
}

void torsh_task_end(uint64_t number)
{
	struct event event = {.id = EVENT_TASK_END, .task_end = {.number = number}};
	int saved;
	struct producer *producer = enter(&saved);

	if (producer)
		torsh_producer_event(producer, &event, NULL);
	leave(producer, saved);
}

/* The processor time is read last before the event is sent, and is of the turn that ends. */
static __attribute__((noinline)) void send_turn(struct producer *producer, uint64_t number)
{
	struct event event = {.id = EVENT_TASK_TURN, .task_turn = {.number = number}};

	event.task_turn.cpu_ns = torsh_cpu_timer_now();
	torsh_producer_event(producer, &event, NULL);
}

uint64_t torsh_task_turn(uint64_t number)
{
	uint64_t former;
	int saved;
	struct producer *producer = enter(&saved);

	/* Once for the first event, before which a forked child has no process of its own. */
	settle();
	former = works.current;
	if (producer && number != former) {
		works.current = number;
		send_turn(producer, number);
	}
	leave(producer, saved);
	return former;
}

uint64_t torsh_task_current(void)
{
	settle();
	return works.current;
}

bool torsh_task_is_visiting(void)
{
	return works.n_visits != 0;
}

/* ---- objects of the interpreter -------------------------------------------------------------- */

/* Of a new task, or of one whose address an earlier one had. Returns false if there is no room. */
static bool begin_object(struct known_task *known, const struct task_object *object,
			 void (*describe)(const void *object, struct task_begin *task))
{
	static _Atomic uint64_t last;
	struct task_begin task = {.kind = object->kind,
				  .parent = object->request ? object->request : object->parent};

	*known = (struct known_task){
		.object = object->object,
		.identity = object->identity,
		.number = TASK_NUMBERS_OWN +
			  atomic_fetch_add_explicit(&last, 1, memory_order_relaxed),
		.inherited = object->request,
	};
	if (!torsh_known_tasks_put(known))
		return false;
	task.number = known->number;
	describe(object->object, &task);
	torsh_task_begin(&task);
	return true;
}

/* A request that began in the task itself counts, not the task. */
static uint64_t number_of(const struct known_task *known, const struct task_object *object)
{
	return object->request && object->request != known->inherited ? object->request
								      : known->number;
}

void torsh_task_enter(struct task_visit *visit, const struct task_object *object,
		      void (*describe)(const void *object, struct task_begin *task))
{
	struct known_task known = {0};
	uint64_t number = object->request;

	settle();
	*visit = (struct task_visit){.former = works.current, .inherited = works.inherited};
	works.n_visits++;
	if (object->object && (torsh_known_tasks_find(object->object, object->identity, &known) ||
			       begin_object(&known, object, describe))) {
		visit->task = known.number;
		works.inherited = known.inherited;
		number = number_of(&known, object);
	} else if (!number || number == works.inherited) {
		number = works.current;
	}
	torsh_task_turn(number);
}

void torsh_task_leave(const struct task_visit *visit, const struct task_object *object,
		      bool is_done)
{
	torsh_task_turn(visit->former);
	works.inherited = visit->inherited;
	works.n_visits -= works.n_visits != 0;
	if (!is_done || !visit->task)
		return;
	torsh_known_tasks_drop(object->object);
	torsh_task_end(visit->task);
}

void torsh_task_submit(const struct task_object *object,
		       void (*describe)(const void *object, struct task_begin *task))
{
	struct task_object item = *object;
	struct known_task known;

	settle();
	item.parent = works.current;
	begin_object(&known, &item, describe);
}

void torsh_task_take(struct task_visit *visit, const struct task_object *object,
		     void (*describe)(const void *object, struct task_begin *task))
{
	struct known_task known;

	settle();
	*visit = (struct task_visit){.former = works.current};
	if (!torsh_known_tasks_find(object->object, object->identity, &known) &&
	    !begin_object(&known, object, describe))
		return;
	visit->task = known.number;
	torsh_task_turn(known.number);
}

void torsh_task_finish(const struct task_visit *visit, const void *object)
{
	if (!visit->task)
		return;
	torsh_task_turn(visit->former);
	torsh_known_tasks_drop(object);
	torsh_task_end(visit->task);
}

void torsh_task_start(const struct task_object *object,
		      void (*describe)(const void *object, struct task_begin *task))
{
	struct known_task known;

	settle();
	torsh_task_turn(begin_object(&known, object, describe) ? known.number : object->request);
}

bool torsh_task_is_known(const struct task_object *object)
{
	struct known_task known;

	return torsh_known_tasks_find(object->object, object->identity, &known);
}

void torsh_task_stop(const void *object)
{
	struct known_task known;

	if (!torsh_known_tasks_find(object, object, &known))
		return;
	torsh_known_tasks_drop(object);
	torsh_task_end(known.number);
}

static void note(const char *sentence)
{
	int saved;
	struct producer *producer = enter(&saved);

	if (producer)
		torsh_channel_note(&torsh_process->channel, sentence);
	leave(producer, saved);
}

static void not_followed(void)
{
	note("requests: tasks of asyncio are not recorded: the layout of this version of CPython "
	     "is not known");
}

static void no_works(void)
{
	note("requests: work items of concurrent.futures are not recorded: the layout of this "
	     "version of CPython is not known");
}

static const struct cpython_task_watcher watcher = {
	.enter = torsh_task_enter,
	.leave = torsh_task_leave,
	.impossible = not_followed,
	.submit = torsh_task_submit,
	.take = torsh_task_take,
	.finish = torsh_task_finish,
	.no_works = no_works,
};

static void no_greenlets(void)
{
	note("requests: greenlets are not recorded: the layout of this version of the package "
	     "greenlet, or of CPython, is not known; greenlet's is from 2.0 on");
}

static const struct cpython_greenlet_watcher greenlet_watcher = {
	.start = torsh_task_start,
	.is_known = torsh_task_is_known,
	.stop = torsh_task_stop,
	.current = torsh_task_current,
	.turn = torsh_task_turn,
	.impossible = no_greenlets,
};

bool torsh_tasks_follow(void *variable)
{
	return torsh_tasks_are_wanted() && torsh_cpython_tasks_follow(&watcher, variable, false);
}

bool torsh_tasks_follow_greenlets(void)
{
	return torsh_tasks_are_wanted() &&
	       torsh_cpython_greenlets_follow(&greenlet_watcher, torsh_config.requests);
}

void torsh_tasks_thread_starting(void)
{
	if (__builtin_expect(torsh_config.requests, 0) && torsh_agent_is_on())
		torsh_cpython_works_follow(&watcher);
}

void torsh_tasks_watch(void)
{
	if (!torsh_config.requests)
		return;
	torsh_cpython_tasks_watch(&watcher);
	torsh_cpython_greenlets_watch(&greenlet_watcher);
}
