/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which processes are workers of a DataLoader: all their operators and modules load batches. A
 * worker descends from a process that receives batches from workers during its lifetime, and
 * neither trains nor has batches of its own.
 */
#ifndef TORSH_TIMELINE_PREPASS_DATA_WORKERS_H
#define TORSH_TIMELINE_PREPASS_DATA_WORKERS_H

#include "tools/timeline/spans.h"

struct data_workers;

/* Begin without evidence; the recording must outlive it. */
struct data_workers *torsh_data_workers_create(const struct recording *recording);

/* Free the finder. */
void torsh_data_workers_destroy(struct data_workers *workers);

/* Pass each span of a process, in any order. */
void torsh_data_workers_add(struct data_workers *workers, const struct span *span);

/*
 * Set is_data_worker of these processes, after all their spans were passed. If needed, reads the
 * timelines of their ancestors that are not among them. Returns 0 or -errno.
 */
int torsh_data_workers_decide(struct data_workers *workers,
			      struct recorded_process *const *processes, size_t n_processes);

#endif
