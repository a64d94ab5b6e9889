/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Functions shared by NVTX's core and its extensions. */
#ifndef TORSH_COLLECTORS_RANGES_NVTX_EVENTS_H
#define TORSH_COLLECTORS_RANGES_NVTX_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/ranges/ranges.h"

/*
 * The label of a domain's or a registered string's text; 0: unknown handle, or NULL, the default
 * domain.
 */
uint32_t torsh_nvtx_label(void *handle);

/* The text of a message of this type (enum nvtx_message_type), or none. */
struct range_text torsh_nvtx_text(int32_t type, const void *message);

/* The name of a domain's category, or its number; room has 16 bytes. */
struct range_text torsh_nvtx_category(uint32_t domain, uint32_t category, char *room);

/*
 * Record the beginning of a range, with the consumer's id if there is a consumer. Returns its id.
 */
uint64_t torsh_nvtx_start(const struct range_attributes *range, uint64_t theirs, bool has_consumer);

/* Record the end of the range with this id. */
void torsh_nvtx_end(uint64_t id);

#endif
