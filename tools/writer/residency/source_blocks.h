/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The live blocks that an account is taken of: the target's, and those that it inherited. */
#ifndef TORSH_WRITER_RESIDENCY_SOURCE_BLOCKS_H
#define TORSH_WRITER_RESIDENCY_SOURCE_BLOCKS_H

#include <stdbool.h>

#include "tools/writer/residency/account_take.h"
#include "tools/writer/residency/resident_blocks.h"

/*
 * Collect the blocks: of those that were inherited the ones in pages that are not shared any more,
 * and near them. The caller puts them in order. Returns why live and free memory can't be divided,
 * which stays there; NULL if they are.
 */
const char *torsh_source_blocks_collect(struct resident_blocks *blocks,
					const struct memory_look *look,
					const struct account_source *source);

/* Returns whether an allocator's path is the C library's. */
bool torsh_is_of_glibc(const char *allocator);

#endif
