/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The processes that a user's command went through: shells and small programs of the system. Their
 * leaks are counted apart, and never stand before those of the user's program.
 */
#ifndef TORSH_MEMORY_LEAKS_HELPER_PROCESSES_H
#define TORSH_MEMORY_LEAKS_HELPER_PROCESSES_H

#include "tools/memory/leaks/leaks.h"

/* Returns true if the process ran a shell. */
bool torsh_is_shell(const struct recorded_process *process);

/*
 * Take the leaks of helper processes out of what was found, and sum them up in leaks->helpers. A
 * process is one only where another one is none: a shell that was recorded alone is the user's.
 */
void torsh_helper_processes_fold(struct leaks *leaks, struct recorded_process *const *processes);

#endif
