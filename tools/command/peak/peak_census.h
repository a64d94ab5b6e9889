/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* CPython's small objects near the peak of a process. */
#ifndef TORSH_COMMAND_PEAK_PEAK_CENSUS_H
#define TORSH_COMMAND_PEAK_PEAK_CENSUS_H

#include "tools/base/json_writer.h"
#include "tools/recording/recording.h"

/* Print them as text; nothing if there is no census. */
void torsh_peak_census_text(const struct recorded_process *process);

/* Emit them as the member python_census; null if there is none. */
void torsh_peak_census_json(struct json_writer *json, const struct recorded_process *process);

#endif
