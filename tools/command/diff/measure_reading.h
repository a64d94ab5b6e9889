/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Measures a recording that a command has opened, as a run of a comparison. */
#ifndef TORSH_COMMAND_DIFF_MEASURE_READING_H
#define TORSH_COMMAND_DIFF_MEASURE_READING_H

#include "tools/command/reading.h"
#include "tools/compare/compare.h"

/* Measure the reading as run number run; it stays open until the comparison is freed. */
void torsh_measure_reading(struct comparison *comparison, size_t run, const struct reading *reading,
			   struct read_options *options);

#endif
