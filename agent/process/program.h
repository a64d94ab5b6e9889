/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Inspects a program before exec: some can't be preloaded, and the report then states why they are
 * missing.
 */
#ifndef TORSH_AGENT_PROCESS_PROGRAM_H
#define TORSH_AGENT_PROCESS_PROGRAM_H

#include <stdbool.h>

#include "agent/wire/event.h"

struct text;

/*
 * Why the program at path (searched in PATH if it has no slash) can't be followed. Returns
 * PROGRAM_FINE if it can, or if it can't be inspected. Otherwise `program` gets its absolute path
 * and `culprit`, for a script, that of the interpreter that is the reason. Plain system calls;
 * keeps errno, and uses hardly any stack.
 */
enum program_problem torsh_program_inspect(const char *path, struct text *program,
					   struct text *culprit);

/*
 * Whether a program with this problem must not load the agent: its loader would refuse it or print
 * a complaint, or it would not run.
 */
static inline bool torsh_program_is_apart(enum program_problem problem)
{
	return problem == PROGRAM_FOREIGN || problem == PROGRAM_OTHER_LIBC ||
	       problem == PROGRAM_WITHOUT_AGENT || problem == PROGRAM_UNDER_FILTER ||
	       problem == PROGRAM_SANITIZED;
}

#endif
