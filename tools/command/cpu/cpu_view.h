/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What torsh cpu prints, as text and as JSON. */
#ifndef TORSH_COMMAND_CPU_CPU_VIEW_H
#define TORSH_COMMAND_CPU_CPU_VIEW_H

#include "tools/command/reading.h"
#include "tools/cpu/cpu_totals.h"

#define CPU_TEXT_LIMIT 30

struct cpu_view {
	const struct reading *reading;
	const struct read_options *options;
	struct prepass prepass;
	struct cpu_samples samples;
	enum cpu_group group; /* of the text */
};

/* Sum the view's samples by a group; torsh_cpu_totals_free frees the totals. */
void torsh_cpu_view_totals(const struct cpu_view *view, enum cpu_group group,
			   struct cpu_totals *totals);

/* Were runs of Python's garbage collector recorded, of at least one process? */
bool torsh_cpu_view_has_gc(const struct cpu_view *view);

/* How the first sampled process was sampled, else one that should have been; or NULL. */
const struct cpu_sampling *torsh_cpu_view_sampling(const struct cpu_view *view);

void torsh_cpu_print_json(const struct cpu_view *view);

void torsh_cpu_print_text(const struct cpu_view *view);

#endif
