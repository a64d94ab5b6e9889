/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The pools in torsh regions: those of a program that describes them by NVTX. */
#ifndef TORSH_COMMAND_REGIONS_POOLS_H
#define TORSH_COMMAND_REGIONS_POOLS_H

#include "tools/base/json_writer.h"
#include "tools/memory/pools.h"

/* Emit the members pools and unknown_pools; each pool has up to n_left_max of its last regions. */
void torsh_regions_emit_pools(struct json_writer *json, const struct pools *pools,
			      size_t n_left_max);

/* Print a table of them, if there are any. */
void torsh_regions_print_pools(const struct pools *pools);

#endif
