/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Other tools hear of what their own protocol didn't bring: ranges and marks by torsh.h and by ITT
 * where a consumer of NVTX was there first, those by torsh.h and by NVTX where one of ITT was.
 * Never ourselves: there only the call that came is recorded. Ranges by number are told to ITT
 * only, which takes numbers from us.
 */
#ifndef TORSH_COLLECTORS_CUDA_BRIDGE_H
#define TORSH_COLLECTORS_CUDA_BRIDGE_H

#include "shim/ranges/itt.h"
#include "shim/ranges/nvtx.h"
#include "shim/ranges/ranges.h"

static inline int torsh_bridge_is_needed(void)
{
	return torsh_nvtx_has_consumer | torsh_itt_has_consumer;
}

/* Outside of a producer: consumers do what they like. */
void torsh_bridge_push(const struct range_attributes *range);
void torsh_bridge_pop(struct range_text domain, enum range_source source);
void torsh_bridge_mark(const struct range_attributes *range);
void torsh_bridge_start(const struct range_attributes *range, uint64_t number);
void torsh_bridge_end(uint64_t number);

#endif
