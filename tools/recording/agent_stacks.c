/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/recording/agent_stacks.h"

#include <string.h>

#include "agent/wire/channel.h"
#include "tools/base/die.h"

static bool is_agents(const struct recorded_process *process, uint32_t address)
{
	const struct recorded_function *function = torsh_recording_function(process, address);

	return function && function->file && strcmp(function->file, AGENT_PYTHON_FILE) == 0;
}

static bool has_agents_function(const struct recorded_process *process)
{
	for (size_t i = 0; i < process->tables->n_functions; i++) {
		const char *file = process->tables->functions[i].file;

		if (file && strcmp(file, AGENT_PYTHON_FILE) == 0)
			return true;
	}
	return false;
}

void torsh_agent_stacks_hide(struct recorded_process *process)
{
	/* Another process that shares the tables may have been here. */
	if (process->tables->is_agents || !process->tables->n_stacks ||
	    !has_agents_function(process))
		return;
	process->tables->is_agents = torsh_need_items(NULL, 0, process->tables->n_stacks,
						      sizeof(*process->tables->is_agents));
	process->tables->n_is_agents = process->tables->n_stacks;
	/* A parent has a lower number than its children: it is already replaced. */
	for (size_t i = 1; i < process->tables->n_stacks; i++) {
		struct recorded_stack *stack = &process->tables->stacks[i];

		process->tables->is_agents[i] = process->tables->is_agents[stack->parent] ||
						is_agents(process, stack->address);
		if (process->tables->is_agents[i])
			*stack = process->tables->stacks[stack->parent];
	}
}

bool torsh_agent_stacks_has(const struct recorded_process *process, uint32_t stack)
{
	return stack < process->tables->n_is_agents && process->tables->is_agents[stack];
}
