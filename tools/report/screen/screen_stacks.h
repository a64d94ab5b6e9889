/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Stacks of threads that a recording has of a hang, or as a snapshot with stacks. */
#ifndef TORSH_REPORT_SCREEN_SCREEN_STACKS_H
#define TORSH_REPORT_SCREEN_SCREEN_STACKS_H

#include "tools/base/json_writer.h"
#include "tools/recording/stacks/recorded_stacks.h"

/* Print a line for each of some threads; nothing without stacks. */
void torsh_screen_stacks(const struct recorded_thread_stacks *stacks);

/* Print all of them, a frame a line. */
void torsh_stacks_text(const struct recorded_thread_stacks *stacks);

/* Emit the member thread_stacks; nothing without stacks. */
void torsh_stacks_json(struct json_writer *json, const struct recorded_thread_stacks *stacks);

#endif
