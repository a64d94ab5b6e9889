/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The garbage collector's time as a share of the steps or of the run, and how reports show it. */
#ifndef TORSH_ANALYSIS_HOST_GC_FIGURES_H
#define TORSH_ANALYSIS_HOST_GC_FIGURES_H

#include "tools/analysis/metrics.h"
#include "tools/base/json_writer.h"

/* Whether the collector's runs were recorded. */
bool torsh_gc_is_recorded(const struct metrics_process *of);

/*
 * The time that the collector's steady runs are a share of: the whole steps after the first or,
 * without steps, the run. 0: it is unknown, and *reason has why.
 */
double torsh_gc_whole_ns(const struct metrics_process *of, const char **reason);

/* The share in percent of the runs in that time; 0 where it is unknown. */
double torsh_gc_share(const struct metrics_process *of);

/* "the whole steps after the first" or "the run". */
const char *torsh_gc_share_of(const struct metrics_process *of);

/*
 * "1,240 runs took 2.31 s, 9.6% of the run, the longest 41 ms (generation 2)": the steady ones. The
 * caller frees it.
 */
char *torsh_gc_sentence(const struct metrics_process *of);

/* Emit the member python_gc: null where the runs were not recorded, or of is NULL. */
void torsh_gc_json(struct json_writer *json, const struct metrics_process *of);

#endif
