/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Prepares a child of the target to become the writer: it drops what belongs to the target. Runs in
 * that child, which has its own memory, descriptors and limits.
 */
#ifndef TORSH_AGENT_SESSION_WRITER_PROCESS_H
#define TORSH_AGENT_SESSION_WRITER_PROCESS_H

/*
 * Raise all limits as far as allowed, and close the target's descriptors but stderr. Afterwards 0
 * to 2 are open and all above are free. Returns 0, or -errno after a message on stderr.
 */
int torsh_writer_process_prepare(void);

/*
 * Reset signals for the writer: those that end a job are ignored, all others have their default
 * action.
 */
void torsh_writer_process_reset_signals(void);

/*
 * The target's environment without what would start the agent in the writer, in pages of its own;
 * NULL without memory.
 */
char **torsh_writer_process_environment(void);

#endif
