/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh cpu --off and --gil: what threads waited for, and what of the steps was waiting. */
#ifndef TORSH_COMMAND_CPU_CPU_OFF_H
#define TORSH_COMMAND_CPU_CPU_OFF_H

#include "tools/command/reading.h"
#include "tools/cpu/step_parts.h"
#include "tools/cpu/wait_wakers.h"
#include "tools/cpu/waits.h"

struct cpu_off_view {
	struct reading *reading;
	const struct read_options *options;
	struct prepass prepass;
	struct waits waits;
	struct wait_wakers wakers;
	struct step_parts **parts; /* by process of the pre-pass */
	bool is_recorded; /* the waits of at least one process */
	bool is_gil; /* waits for Python's lock alone */
	size_t n_steps;
};

/* Print the report about the reading's processes on stdout, as text or as JSON. */
void torsh_cpu_off(struct reading *reading, const struct read_options *options, bool is_gil);

/* Print it as JSON: tools/schema/cpu.json. */
void torsh_cpu_off_json(const struct cpu_off_view *view);

/* Print it as text. */
void torsh_cpu_off_text(const struct cpu_off_view *view);

#endif
