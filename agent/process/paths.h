/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The files of this process: the agent and the program. They are found once, at start. */
#ifndef TORSH_AGENT_PROCESS_PATHS_H
#define TORSH_AGENT_PROCESS_PATHS_H

#include <stdbool.h>

/* Find the agent's file. Returns 0 or -ENOENT. Both functions run only at start, on one thread. */
int torsh_paths_find_agent(void);
/* Find the program's file. */
void torsh_paths_find_program(void);

/* Whether /proc was readable when the program's file was looked up. */
bool torsh_paths_has_proc(void);

/* The agent's absolute path; "" before it has started. */
const char *torsh_agent_path(void);

/* The program's absolute path; "" if it can't be found. */
const char *torsh_agent_program(void);

/* The base name of torsh_agent_program(). */
const char *torsh_program_name(void);

#endif
