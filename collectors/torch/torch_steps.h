/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Training steps derived from PyTorch's scopes, for a schedule: those of its profiler, and
 * optimizer calls.
 */
#ifndef TORSH_COLLECTORS_TORCH_TORCH_STEPS_H
#define TORSH_COLLECTORS_TORCH_TORCH_STEPS_H

#include <stdbool.h>
#include <stdint.h>

struct producer;

/* Of a thread: the optimizer call in progress. */
struct torch_steps {
	uint64_t record; /* 0: none */
	uint32_t optimizer; /* its label */
};

/* A scope begins; called before anything is sent for it. */
void torsh_torch_steps_begin(struct torch_steps *steps, struct producer *producer, const char *name,
			     uint64_t record);

/* Whether a scope of this name is a step of PyTorch's profiler, or an optimizer's call. */
bool torsh_torch_steps_is_profilers(const char *name);
bool torsh_torch_steps_is_optimizers(const char *name);

/* A call has ended; called after its end was sent. */
void torsh_torch_steps_end(struct torch_steps *steps, struct producer *producer, uint64_t record);

#endif
