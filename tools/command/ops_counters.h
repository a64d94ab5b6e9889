/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh ops --counters: what the CPU counted in operators, and on each thread. */
#ifndef TORSH_COMMAND_OPS_COUNTERS_H
#define TORSH_COMMAND_OPS_COUNTERS_H

#include "tools/report/counters/cpu_roofline.h"

/* Print the first n operators, threads, and what the machine's memory moved. */
void torsh_ops_counters(const struct operators *operators, size_t n, const struct prepass *prepass,
			const struct cpu_roofline_limits *limits,
			const struct traffic_report *traffic);

#endif
