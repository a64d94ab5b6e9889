/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The heap of a process over time by allocation site, as scalars for TensorBoard. */
#ifndef TORSH_EXPORT_TENSORBOARD_TENSORBOARD_HEAP_H
#define TORSH_EXPORT_TENSORBOARD_TENSORBOARD_HEAP_H

#include "tools/export/tensorboard/tensorboard_file.h"
#include "tools/export/trace.h"

/*
 * Put what the largest sites had, what the others had together, and the sum: at the ends of steps,
 * by their numbers; of a process without steps at all of its moments, by milliseconds since the
 * recording began.
 */
void torsh_tensorboard_heap(struct tensorboard_file *tensorboard, const struct trace *trace,
			    struct recorded_process *process);

#endif
