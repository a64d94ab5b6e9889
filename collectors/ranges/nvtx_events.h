/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What NVTX's core and its extensions have in common. */
#ifndef TORSH_COLLECTORS_RANGES_NVTX_EVENTS_H
#define TORSH_COLLECTORS_RANGES_NVTX_EVENTS_H

#include <stdint.h>

#include "shim/ranges/ranges.h"

/*
 * The label of the text that a domain or a registered string is; 0: not known, or NULL, the default
 * domain.
 */
uint32_t torsh_nvtx_label(void *handle);

/*
 * Record the beginning of a range that is to have the consumer's id, where there is a consumer.
 * Returns its id.
 */
uint64_t torsh_nvtx_start(const struct range_attributes *range, uint64_t theirs, int has_consumer);
void torsh_nvtx_end(uint64_t id);

#endif
