/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a child of the target sheds of it before it becomes the writer. Called in that child, whose
 * memory, descriptors and limits are its own.
 */
#ifndef TORSH_AGENT_SESSION_WRITER_PROCESS_H
#define TORSH_AGENT_SESSION_WRITER_PROCESS_H

/*
 * Give the writer room: limits as high as they go, and of the target's descriptors only stderr is
 * kept. Afterwards 0 to 2 are taken and everything above is free. Returns 0, or -errno with a
 * sentence on stderr.
 */
int torsh_writer_process_prepare(void);

/*
 * The writer's signals are not the target's: those that end a job are ignored, all others as at a
 * program's start.
 */
void torsh_writer_process_reset_signals(void);

/*
 * The target's environment without what would start the agent in the writer, in pages of its own;
 * NULL: no memory.
 */
char **torsh_writer_process_environment(void);

#endif
