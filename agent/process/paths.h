/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The files of this process: the agent's own and the program's. They are found once, at start.
 */
#ifndef TORSH_AGENT_PROCESS_PATHS_H
#define TORSH_AGENT_PROCESS_PATHS_H

#include <stdbool.h>

/* Find the agent's file. Returns 0 or -ENOENT. Start only: no other thread calls these two. */
int torsh_paths_find_agent(void);
/* Find the program's file. */
void torsh_paths_find_program(void);

/* Was /proc readable when the program's file was looked for? */
bool torsh_paths_has_proc(void);

/* The agent's own file, absolute; "" before it has started. */
const char *torsh_agent_path(void);

/* The program's file, absolute; "" where it can't be had. */
const char *torsh_agent_program(void);

/* The last part of torsh_agent_program(). */
const char *torsh_program_name(void);

#endif
