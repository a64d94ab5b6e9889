/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Allocations by the agent's own Python code in the program: their stacks are cut to the program's
 * frames.
 */
#ifndef TORSH_RECORDING_AGENT_STACKS_H
#define TORSH_RECORDING_AGENT_STACKS_H

#include "tools/recording/recording.h"

/*
 * Find stacks with a line of the agent's own code and cut them to the frames outside of it. Call
 * after all chunks are loaded, before anything else of the process is read.
 */
void torsh_agent_stacks_hide(struct recorded_process *process);

/* Returns true if this stack had such a line. */
bool torsh_agent_stacks_has(const struct recorded_process *process, uint32_t stack);

#endif
