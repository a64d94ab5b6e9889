/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/recording/agent_stacks.h"

#include <stdlib.h>
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

/* Returns which addresses are the agent's; the caller frees it. */
static bool *find_addresses(const struct recorded_process *process)
{
	bool *is_address = torsh_need_items(NULL, 0, PROFILE_NO_ADDRESS + 1u, sizeof(*is_address));

	for (uint32_t i = 0; i < process->tables->n_addresses; i++)
		is_address[i] = is_agents(process, i);
	return is_address;
}

void torsh_agent_stacks_hide(struct recorded_process *process)
{
	struct recorded_tables *tables = process->tables;
	bool *is_address;

	/* Another process that shares the tables may have been here. */
	if (tables->is_agents || !tables->n_stacks || !has_agents_function(process))
		return;
	tables->is_agents = torsh_need_items(NULL, 0, tables->n_stacks, sizeof(*tables->is_agents));
	tables->n_is_agents = tables->n_stacks;
	is_address = find_addresses(process);
	/* A parent has a lower number than its children: it is already replaced. */
	for (size_t i = 1; i < tables->n_stacks; i++) {
		struct recorded_stack *stack = &tables->stacks[i];

		if (!tables->is_agents[stack->parent] && !is_address[stack->address])
			continue;
		/* Few are: pages without one take no memory. */
		tables->is_agents[i] = true;
		*stack = tables->stacks[stack->parent];
	}
	free(is_address);
}

bool torsh_agent_stacks_has(const struct recorded_process *process, uint32_t stack)
{
	return stack < process->tables->n_is_agents && process->tables->is_agents[stack];
}
