/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Helper processes: shells and small system programs that a user's command went through, and
 * what it ran to do its work: compilers, as torch.compile does, and programs that installed
 * packages bring. Their leaks are counted separately, and never
 * listed before those of the user's program.
 */
#ifndef TORSH_MEMORY_LEAKS_HELPER_PROCESSES_H
#define TORSH_MEMORY_LEAKS_HELPER_PROCESSES_H

#include "tools/memory/leaks/leaks.h"

/* Returns true if the process ran a shell. */
bool torsh_is_shell(const struct recorded_process *process);

/*
 * Move the leaks of helper processes from the found ones to the sums in leaks->helpers. If all
 * processes are helpers by their program, none is: a shell that was recorded alone is the user's.
 */
void torsh_helper_processes_fold(struct leaks *leaks, struct recorded_process *const *processes);

#endif
