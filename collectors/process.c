/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The process collector: what the writer must know to follow a tree of processes and to say how each ended.
 */
#include <errno.h>

#include "agent/counter.h"
#include "agent/environment.h"
#include "agent/process.h"
#include "agent/program.h"
#include "agent/registry.h"
#include "agent/text.h"
#include "shim/hooks.h"

void torsh_process_forked(pid_t child)
{
	struct event event = {.id = EVENT_FORK, .fork = {.child = (uint32_t)child}};
	int saved = errno;
	struct flow *flow = torsh_agent_is_borrowed() ? NULL : torsh_flow_enter();

	if (flow) {
		torsh_flow_event(flow, &event, NULL);
		torsh_flow_leave(flow);
		torsh_count(COUNTER_followed_children);
	}
	errno = saved;
}

/* It says hello at once: who is killed before it allocates anything was there too. */
void torsh_process_born(void)
{
	struct flow *flow = torsh_flow_enter();

	if (flow)
		torsh_flow_leave(flow);
}

static void set_state(enum channel_state state)
{
	atomic_store_explicit(&torsh_process->channel.header->state, state, memory_order_release);
}

static void record_exec(uint32_t has_failed)
{
	struct event event = {.id = EVENT_EXEC, .exec = {.failed = has_failed}};
	struct flow *flow = torsh_flow_enter();

	if (!flow)
		return;
	torsh_flow_event(flow, &event, NULL);
	torsh_flow_leave(flow);
}

/* The note stays with the process that starts the program: the program itself can't have a row of its own. */
void torsh_process_starting(const char *program)
{
	char buffer[2048];
	struct text problem = TEXT_IN(buffer);

	if (!program || atomic_load_explicit(&torsh_agent_state, memory_order_acquire) != AGENT_ON ||
	    !torsh_process->pid)
		return;
	buffer[0] = '\0';
	torsh_program_inspect(program, &problem);
	if (problem.length)
		torsh_channel_note(&torsh_process->channel, buffer);
}

int torsh_process_executing(void)
{
	if (atomic_load_explicit(&torsh_agent_state, memory_order_acquire) != AGENT_ON || torsh_agent_is_borrowed())
		return 0;
	/* In a forked child that did nothing yet this gives it its channel, whose end the exec is. */
	record_exec(0);
	if (!torsh_process->pid)
		return 0;
	set_state(CHANNEL_EXECUTING);
	return 1;
}

void torsh_process_not_executed(void)
{
	int saved = errno;

	record_exec(1);
	set_state(CHANNEL_RUNNING);
	errno = saved;
}

void torsh_process_exiting(int status, enum exit_how how)
{
	torsh_agent_exiting(status, how);
}

void torsh_process_code_unmapped(void)
{
	int saved = errno;

	if (atomic_load_explicit(&torsh_agent_state, memory_order_acquire) == AGENT_ON) {
		torsh_registry_forget_modules();
		torsh_stack_forget_code();
	}
	errno = saved;
}

void torsh_process_loading_apart(const char *path)
{
	char buffer[512];
	struct text note = TEXT_IN(buffer);

	if (!path || atomic_load_explicit(&torsh_agent_state, memory_order_acquire) != AGENT_ON || !torsh_process->pid)
		return;
	torsh_text_put(&note, "heap: opened with RTLD_DEEPBIND or in a namespace of its own, past the agent: what it "
			      "allocates is not seen: ");
	torsh_text_put(&note, path);
	torsh_channel_note(&torsh_process->channel, buffer);
}

size_t torsh_process_environment_slots(char *const *envp)
{
	return torsh_environment_slots(envp);
}

char *const *torsh_process_environment(char *const *envp, char **slots)
{
	return torsh_environment_for_child(envp, slots);
}
