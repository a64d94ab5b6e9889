/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The process collector: forks, execs, exits and muted threads, by which the writer follows a
 * process tree.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "agent/modules/module_registry.h"
#include "agent/process/agent.h"
#include "agent/process/environment.h"
#include "agent/process/process.h"
#include "agent/process/program.h"
#include "agent/process/text_buffer.h"
#include "agent/producer/counter.h"
#include "agent/session/dormant.h"
#include "agent/session/rest.h"
#include "collectors/perf/thread_counters.h"
#include "collectors/waits/wait_events.h"
#include "shim/hooks.h"
#include "shim/libc/thread.h"

#define ARGUMENTS_MAX 512 /* bytes of the arguments of a program that can't be followed */
#define CUT "..." /* replaces the rest */
#define SLOTS_ON_STACK 64u /* of a child's environment */
#define PROGRAMS_TEXT_MAX (1u << 20) /* of the text area, for all such programs of a process */

void torsh_process_forking(void)
{
	int saved = errno;

	torsh_rest_if_ended();
	if (!torsh_agent_is_borrowed())
		torsh_agent_forking();
	errno = saved;
}

void torsh_process_forked(pid_t child)
{
	struct event event = {.id = EVENT_FORK, .fork = {.child = (uint32_t)child}};
	int saved = errno;
	struct producer *producer = torsh_agent_is_borrowed() ? NULL : torsh_producer_enter();

	if (producer) {
		torsh_producer_event(producer, &event, NULL);
		torsh_producer_leave(producer);
		torsh_count(COUNTER_followed_children);
	}
	errno = saved;
}

/*
 * Sends its hello at once, so that the recording has it even if it is killed before it allocates.
 */
static void open_own(void)
{
	struct producer *producer = torsh_producer_enter();

	if (producer)
		torsh_producer_leave(producer);
}

void torsh_process_created(void)
{
	int saved = errno;

	torsh_agent_created();
	errno = saved;
	open_own();
}

static void set_state(enum channel_state state)
{
	atomic_store_explicit(&torsh_process->channel.header->state, state, memory_order_release);
}

static void record_exec(bool has_failed)
{
	struct event event = {.id = EVENT_EXEC, .exec = {.failed = has_failed}};
	struct producer *producer = torsh_producer_enter();

	if (!producer)
		return;
	torsh_producer_event(producer, &event, NULL);
	torsh_producer_leave(producer);
}

/* Buffers for a program event's text: too large for the stack of a signal handler. */
struct program_start {
	uint64_t begin_ns;
	struct text found, found_culprit; /* of the links that are followed */
	char program[PATH_MAX], culprit[PATH_MAX];
	char text[2 * PATH_MAX + ARGUMENTS_MAX + sizeof(CUT)];
};

static void put_string(struct text *text, const char *string)
{
	torsh_text_put_bytes(text, string, strlen(string) + 1);
}

/*
 * Put the strings of a program event into the channel's text area; none once many programs have
 * filled their part of it.
 */
static struct channel_text describe_start(struct program_start *start, char *const *argv)
{
	_Atomic uint32_t *used = &torsh_process->n_programs_text;
	struct text text = TEXT_IN(start->text);
	size_t n_paths;

	put_string(&text, start->program);
	put_string(&text, start->culprit);
	n_paths = text.length;
	for (; argv && *argv && text.length - n_paths + strlen(*argv) < ARGUMENTS_MAX; argv++)
		put_string(&text, *argv);
	if (argv && *argv)
		put_string(&text, CUT);
	if (atomic_fetch_add_explicit(used, (uint32_t)text.length, memory_order_relaxed) >
	    PROGRAMS_TEXT_MAX) {
		torsh_count(COUNTER_names_lost);
		return (struct channel_text){0};
	}
	return torsh_channel_add_text(&torsh_process->channel, text.bytes, text.length);
}

static void record_program(pid_t child, enum program_problem problem, struct channel_text text,
			   uint64_t begin_ns)
{
	struct event event = {
		.id = EVENT_PROGRAM,
		.program =
			{
				.child = (uint32_t)child,
				.problem = problem,
				.text = text.offset,
				.length = text.length,
				.begin = begin_ns,
			},
	};
	struct producer *producer = torsh_producer_enter();

	if (!producer)
		return;
	torsh_producer_event(producer, &event, NULL);
	torsh_producer_leave(producer);
}

/*
 * Record a program that can't be followed, on behalf of it in the process that starts it. Returns
 * whether an event was sent. child 0: unknown.
 */
static bool record_plan(pid_t child, const struct child_plan *plan, char *const *argv)
{
	bool is_sent = plan->start && child;

	if (is_sent)
		record_program(child, plan->problem, describe_start(plan->start, argv),
			       plan->start->begin_ns);
	return is_sent;
}

/* After vfork only the kernel has it, and a filter may forbid the query: then 0. */
static pid_t number_of_self(bool is_borrowed)
{
	if (!is_borrowed)
		return torsh_process->pid;
	return torsh_agent_is_sandboxed() ? 0 : torsh_sys_getpid();
}

static bool is_on(void)
{
	return atomic_load_explicit(&torsh_agent_state, memory_order_acquire) == AGENT_ON &&
	       torsh_process->pid;
}

static _Thread_local struct producer *muted; /* the producer that a muted thread gave up */

static void drop_start(struct child_plan *plan)
{
	if (plan->start)
		torsh_sys_munmap(plan->start, sizeof(*plan->start));
	plan->start = NULL;
}

enum reported { REPORTED_EXEC = 1, REPORTED_PROGRAM = 2, REPORTED_DORMANT = 4 };

int torsh_process_executing(struct child_plan *plan, char *const *argv)
{
	int reported = 0;
	bool is_borrowed;

	torsh_rest_if_ended();
	if (torsh_agent_is_dormant()) {
		torsh_dormant_end();
		drop_start(plan);
		return REPORTED_DORMANT;
	}
	/* In a child of a fork that the agent did not record. */
	open_own();
	/* After vfork this is the parent's producer, which is idle meanwhile. */
	is_borrowed = is_on() && torsh_agent_is_borrowed();
	if (is_on() && record_plan(number_of_self(is_borrowed), plan, argv))
		reported |= REPORTED_PROGRAM;
	drop_start(plan);
	if (!is_on() || is_borrowed)
		return reported;
	torsh_dormant_end();
	torsh_cuda_executing();
	torsh_thread_counters_finish(false);
	torsh_waits_execute();
	record_exec(0);
	set_state(CHANNEL_EXECUTING);
	return reported | REPORTED_EXEC | REPORTED_DORMANT;
}

void torsh_process_not_executed(int reported)
{
	int saved = errno;

	if (reported & REPORTED_DORMANT)
		torsh_dormant_goes_on();
	if (reported & REPORTED_PROGRAM)
		record_program(number_of_self(torsh_agent_is_borrowed()), PROGRAM_FINE,
			       (struct channel_text){0}, 0);
	if (reported & REPORTED_EXEC) {
		record_exec(1);
		set_state(CHANNEL_RUNNING);
	}
	errno = saved;
}

void torsh_process_spawned(pid_t child, const struct child_plan *plan, char *const *argv)
{
	int saved = errno;

	if (is_on() && !torsh_agent_is_borrowed())
		record_plan(child, plan, argv);
	errno = saved;
}

void torsh_process_forbidding(void)
{
	torsh_agent_forbid();
}

/* The kernel reports only the first thread's filters. After vfork the child gets the filter. */
bool torsh_process_filtering(bool is_for_all)
{
	if (!is_on() || torsh_agent_is_sandboxed() || torsh_agent_is_borrowed() ||
	    (!is_for_all && torsh_thread_tid() != torsh_process->pid))
		return false;
	atomic_fetch_add(&torsh_process->channel.header->harmless_filters,
			 CHANNEL_FILTER_UNDER_WAY);
	return true;
}

void torsh_process_filtered(bool is_added)
{
	atomic_fetch_sub(&torsh_process->channel.header->harmless_filters,
			 CHANNEL_FILTER_UNDER_WAY - is_added);
}

bool torsh_process_muting(void)
{
	struct producer *producer;

	if (!is_on())
		return false;
	/* Create the thread's producer, which is restored if nothing was forbidden. */
	producer = torsh_producer_enter();
	if (!producer)
		return false;
	torsh_producer_leave(producer);
	muted = torsh_producer_self;
	torsh_producer_self = &torsh_producer_mute;
	return true;
}

void torsh_process_not_muted(void)
{
	torsh_producer_self = muted;
}

void torsh_process_exiting(int status, enum exit_how how)
{
	torsh_cuda_exiting();
	torsh_agent_exiting(status, how);
}

void torsh_process_finalizing(void)
{
	torsh_agent_exit_begins();
}

void torsh_process_aborting(void)
{
	torsh_agent_aborting();
}

void torsh_process_code_unmapped(void)
{
	int saved = errno;

	if (atomic_load_explicit(&torsh_agent_state, memory_order_acquire) == AGENT_ON) {
		torsh_registry_flush_modules();
		torsh_stack_invalidate_code();
	}
	errno = saved;
}

static void note_library(const char *sentence, const char *path)
{
	struct text note;

	if (!path || atomic_load_explicit(&torsh_agent_state, memory_order_acquire) != AGENT_ON ||
	    !torsh_process->pid)
		return;
	note = torsh_text_map(TEXT_NOTE_BYTES);
	torsh_text_put(&note, sentence);
	torsh_text_put(&note, path);
	torsh_channel_note(&torsh_process->channel, note.bytes);
	torsh_text_unmap(&note);
}

void torsh_process_loading_apart(const char *path)
{
	note_library(
		"heap: opened with RTLD_DEEPBIND or in a namespace of its own, past the agent: what it "
		"allocates is not seen: ",
		path);
}

void torsh_process_loading_allocator(const char *path)
{
	note_library(
		"heap: an allocator was opened while the program ran: what is allocated by its own names (mallocx, "
		"tc_malloc, mi_malloc) is not seen: ",
		path);
}

/*
 * Inspect the program's file, once; not at all if a filter that the process installed might end it
 * for that.
 */
static enum program_problem inspect(const char *program, struct program_start *start)
{
	start->found = (struct text)TEXT_IN(start->program);
	start->found_culprit = (struct text)TEXT_IN(start->culprit);
	if (!torsh_agent_is_sandboxed_now())
		return torsh_program_inspect(program, &start->found, &start->found_culprit);
	torsh_text_put(&start->found, program ? program : "?");
	return PROGRAM_UNDER_FILTER;
}

void torsh_process_plan(struct child_plan *plan, const char *program, char *const *envp)
{
	struct timespec now;

	*plan = (struct child_plan){.envp = envp};
	/* Nothing is stored for children if the agent is inert. */
	if ((!program && !torsh_agent_is_sandboxed()) || !torsh_environment_slots_apart(envp))
		return;
	plan->start = torsh_sys_pages(sizeof(*plan->start));
	if (!plan->start)
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	plan->start->begin_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	plan->problem = inspect(program, plan->start);
	plan->is_apart = torsh_program_is_apart(plan->problem);
	if (plan->problem == PROGRAM_FINE)
		drop_start(plan);
}

void torsh_process_drop_plan(struct child_plan *plan)
{
	drop_start(plan);
	if (plan->slots)
		torsh_sys_munmap(plan->slots, plan->n_slots * sizeof(*plan->slots));
	plan->slots = NULL;
}

size_t torsh_process_environment_slots(struct child_plan *plan)
{
	size_t n = plan->is_apart ? torsh_environment_slots_apart(plan->envp)
				  : torsh_environment_slots(plan->envp);

	if (n > SLOTS_ON_STACK && !torsh_agent_is_borrowed())
		plan->slots = torsh_sys_pages(n * sizeof(*plan->slots));
	plan->n_slots = n;
	return n;
}

char *const *torsh_process_environment(const struct child_plan *plan, char **slots)
{
	return plan->is_apart ? torsh_environment_apart(plan->envp, slots)
			      : torsh_environment_for_child(plan->envp, slots);
}

void torsh_process_name_descriptor(int fd, char path[DESCRIPTOR_PATH_MAX])
{
	struct text text = {.bytes = path, .capacity = DESCRIPTOR_PATH_MAX};

	torsh_text_put(&text, "/proc/self/fd/");
	torsh_text_put_number(&text, (uint64_t)(unsigned)fd);
}
