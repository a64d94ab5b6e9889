/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/diff/measure_reading.h"

void torsh_measure_reading(struct comparison *comparison, size_t run, const struct reading *reading,
			   struct read_options *options)
{
	const struct compare_run of = {
		.recording = reading->recording,
		.processes = reading->processes,
		.n_processes = reading->n_processes,
		.symbols = reading->symbols,
		.view = options->view,
		.suppress = &options->suppress,
		.steps = &options->steps,
	};

	torsh_comparison_measure(comparison, run, &of);
}
