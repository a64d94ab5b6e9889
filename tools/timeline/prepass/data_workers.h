/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which processes are workers of a DataLoader: all that they do is loading batches, whatever
 * operators and modules they call. Such a process descends from one that gets batches from workers
 * in its lifetime, and neither trains nor has batches of its own.
 */
#ifndef TORSH_TIMELINE_PREPASS_DATA_WORKERS_H
#define TORSH_TIMELINE_PREPASS_DATA_WORKERS_H

#include "tools/timeline/spans.h"

struct data_workers;

/* Begin without signs; the recording outlives it. */
struct data_workers *torsh_data_workers_create(const struct recording *recording);
void torsh_data_workers_destroy(struct data_workers *workers);

/* Report each span of a process, in any order. */
void torsh_data_workers_add(struct data_workers *workers, const struct span *span);

/*
 * Set is_data_worker of these processes, whose spans were reported. Where it is needed, reads the
 * timeline of those that they descend from and that are not among them. Returns 0 or -errno.
 */
int torsh_data_workers_decide(struct data_workers *workers,
			      struct recorded_process *const *processes, size_t n_processes);

#endif
