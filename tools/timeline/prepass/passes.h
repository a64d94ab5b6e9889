/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The backward passes of a process, and the end of its setup. Work between a pass and the
 * optimizer's call processes gradients (reducers, clipping), also on the threads of a collective:
 * only its time shows that.
 */
#ifndef TORSH_TIMELINE_PREPASS_PASSES_H
#define TORSH_TIMELINE_PREPASS_PASSES_H

#include "tools/timeline/spans.h"

struct pass_finder;

/* A finder for one process; the caller destroys it. */
struct pass_finder *torsh_pass_finder_create(void);

/* Free the finder. */
void torsh_pass_finder_destroy(struct pass_finder *finder);

/* Pass each span's begin, in time order. */
void torsh_pass_finder_begin(struct pass_finder *finder, const struct span *span);

/* Pass each span's end. */
void torsh_pass_finder_end(struct pass_finder *finder, const struct span *span);

/* Set passes and setup_end_ns of that process. */
void torsh_pass_finder_decide(struct pass_finder *finder, struct recorded_process *process);

/* Returns true if the moment is within a pass, or between one and the optimizer. */
bool torsh_passes_have(const struct recorded_process *process, uint64_t at_ns);

#endif
