/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The samples of processor time by what ran: functions, lines, libraries, threads, operators,
 * modules, phases and steps.
 */
#ifndef TORSH_CPU_CPU_TOTALS_H
#define TORSH_CPU_CPU_TOTALS_H

#include "tools/cpu/cpu_samples.h"
#include "tools/symbols/stack_view.h"

enum cpu_group {
	CPU_BY_FUNCTION,
	CPU_BY_LINE,
	CPU_BY_LIBRARY,
	CPU_BY_THREAD,
	CPU_BY_OPERATOR,
	CPU_BY_MODULE,
	CPU_BY_PHASE,
	CPU_BY_STEP,
	N_CPU_GROUPS
};

extern const char *const torsh_cpu_group_names[N_CPU_GROUPS];

/* Which members are valid depends on the group; texts are interned by symbols or samples. */
struct cpu_total {
	const char *name; /* function, library, operator, module, phase; thread's; NULL: unknown */
	const char *file, *library; /* of a function or line; NULL: unknown */
	int line; /* of a function: where most of its own time went; 0: unknown */
	bool is_python;
	const struct recorded_process *process; /* of a thread or step */
	uint32_t thread; /* row of the process's threads */
	uint64_t step;
	uint64_t self_ns, self_n; /* samples whose innermost frame is there */
	uint64_t total_ns, total_n; /* with what it called; the same where nothing is called */
};

struct cpu_totals {
	struct cpu_total *items;
	size_t n, n_room;
};

/* Add the rows up; the totals are sorted, the largest self time first, steps by number. */
void torsh_cpu_totals_make(struct cpu_totals *totals, const struct cpu_samples *samples,
			   enum cpu_group group, struct symbols *symbols, enum stack_view view);

/* Free them. */
void torsh_cpu_totals_free(struct cpu_totals *totals);

#endif
