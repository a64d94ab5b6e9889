/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A fold's shared part as the message FoldShared. */
#ifndef TORSH_RANKS_FOLD_FOLD_PACK_H
#define TORSH_RANKS_FOLD_FOLD_PACK_H

#include "fold.pb-c.h"
#include "tools/ranks/fold/fold.h"

/* Returns the packed message of a settled fold, *n bytes; the caller frees it. */
uint8_t *torsh_fold_pack(const struct fold *fold, size_t *n);

/*
 * Add a message to a fold. Nothing in it is trusted. Returns 0, or -EPROTO if its numbers do not
 * fit together; then the fold may have a part of it.
 */
int torsh_fold_unpack(struct fold *fold, const uint8_t *packed, size_t n);

/*
 * Unpack the message of a process. Returns NULL if it can't be one: its columns differ in length,
 * or its numbers are out of range. The caller frees it (torsh__fold_rank__free_unpacked).
 */
Torsh__FoldRank *torsh_fold_unpack_rank(const uint8_t *packed, size_t n);

#endif
