/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a child of the target gives up before it becomes the writer. Runs in that child, which has
 * its own memory, descriptors and limits.
 */
#ifndef TORSH_AGENT_SESSION_WRITER_PROCESS_H
#define TORSH_AGENT_SESSION_WRITER_PROCESS_H

/*
 * Raise all limits as far as allowed and close the target's descriptors but stderr. Afterwards 0 to
 * 2 are open and everything above is free. Returns 0, or -errno after a message on stderr.
 */
int torsh_writer_process_prepare(void);

/*
 * Reset signals for the writer: job-ending ones are ignored, all others have their default action.
 */
void torsh_writer_process_reset_signals(void);

/*
 * The target's environment without what would start the agent in the writer, in pages of its own;
 * NULL: no memory.
 */
char **torsh_writer_process_environment(void);

#endif
