/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Inspection of a program before exec: some can't be preloaded, and a report that lacks them states
 * why.
 */
#ifndef TORSH_AGENT_PROCESS_PROGRAM_H
#define TORSH_AGENT_PROCESS_PROGRAM_H

#include <stdbool.h>

#include "agent/wire/event.h"

struct text;

/*
 * Why the program at path (searched along PATH when it holds no slash) can't be followed:
 * PROGRAM_FINE when it can, or can't be looked at. Otherwise its absolute path is put into
 * `program`, and where it is a script that of the interpreter that is to blame into `culprit`.
 * Plain system calls; errno is kept, and hardly any stack is taken.
 */
enum program_problem torsh_program_inspect(const char *path, struct text *program,
					   struct text *culprit);

/*
 * Whether a program with this problem must not be made to load the agent: its loader would refuse
 * it, or complain.
 */
static inline bool torsh_program_is_apart(enum program_problem problem)
{
	return problem == PROGRAM_FOREIGN || problem == PROGRAM_OTHER_LIBC ||
	       problem == PROGRAM_WITHOUT_AGENT || problem == PROGRAM_UNDER_FILTER;
}

#endif
