/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the agent's own Python allocated in the program: by its stacks, which show only what of the
 * program called it.
 */
#ifndef TORSH_RECORDING_AGENT_STACKS_H
#define TORSH_RECORDING_AGENT_STACKS_H

#include "tools/recording/recording.h"

/*
 * Find the stacks with a line of the agent's own, and have each be its part outside of that. Once
 * all chunks are loaded, before anything else of the process is read.
 */
void torsh_agent_stacks_hide(struct recorded_process *process);

/* Had this stack such a line? */
bool torsh_agent_stacks_has(const struct recorded_process *process, uint32_t stack);

#endif
