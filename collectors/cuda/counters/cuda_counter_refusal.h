/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Why CUPTI refuses counters, as a sentence with what to do. */
#ifndef TORSH_COLLECTORS_CUDA_COUNTERS_CUDA_COUNTER_REFUSAL_H
#define TORSH_COLLECTORS_CUDA_COUNTERS_CUDA_COUNTER_REFUSAL_H

#include "agent/process/text_buffer.h"

/*
 * Append the reason for result to text. admin_only: path of the file with the driver's
 * RmProfilingAdminOnly parameter, COUNTER_ADMIN_ONLY except in tests.
 */
void torsh_counter_refusal(struct text *text, int result, const char *admin_only);

#define COUNTER_ADMIN_ONLY "/proc/driver/nvidia/params"

#endif
