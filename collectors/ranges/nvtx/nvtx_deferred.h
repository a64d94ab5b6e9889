/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * NVTX's deferred events: ranges and marks that the program measured itself and submits later, with
 * times of a clock that it names. The functions are those of the payload extension, without the
 * consumer's part.
 */
#ifndef TORSH_COLLECTORS_RANGES_NVTX_DEFERRED_H
#define TORSH_COLLECTORS_RANGES_NVTX_DEFERRED_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/ranges/nvtx.h"

/* Remember the layout of a schema with timestamps; others are ignored. name: its label. */
void torsh_nvtx_deferred_schema(void *domain, uint64_t id, const struct nvtx_schema *schema,
				uint32_t name);

/* Record one event, of the first payload whose schema has timestamps; or a batch of them. */
void torsh_nvtx_deferred_submit(void *domain, const struct nvtx_payload *payloads, size_t n);
void torsh_nvtx_deferred_batch(void *domain, const struct nvtx_batch *batch);

/* Nanoseconds of CLOCK_MONOTONIC: the time domain of whoever takes its times from the agent. */
int64_t torsh_nvtx_now(void);

/* Remember a time domain by its id, or how its clock is read: the agent reads it now and later. */
void torsh_nvtx_time_domain(void *domain, uint64_t id, const struct nvtx_time_domain *attributes);
void torsh_nvtx_time_source(void *domain, uint64_t id, int64_t (*read)(void *data), void *data);

/* Two clocks at one moment, and the nanoseconds of a tick of the first one; 0: not known. */
void torsh_nvtx_time_sync(void *domain, uint64_t one, uint64_t other, int64_t at_one,
			  int64_t at_other, double slope);

/*
 * Two times of that domain, or, where it is 0, of the one with this scope, in nanoseconds of
 * CLOCK_MONOTONIC. Returns false where the clock is not known well enough.
 */
bool torsh_nvtx_times(void *domain, uint64_t id, uint64_t scope, const int64_t at[2],
		      uint64_t at_ns[2]);

#endif
