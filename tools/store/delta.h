/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Columns of a chunk that are stored as differences, because the plain numbers hardly compress:
 * stacks' parents, and numbers and times that are nearly in order. In memory a chunk has only plain
 * columns.
 */
#ifndef TORSH_STORE_DELTA_H
#define TORSH_STORE_DELTA_H

#include "recording.pb-c.h"

/* Replace the plain columns by differences, in place. */
void torsh_delta_encode(Torsh__Chunk *chunk);

/*
 * Replace differences by plain columns. Invalid differences become invalid numbers, which readers
 * of the columns check.
 */
void torsh_delta_decode(Torsh__Chunk *chunk);

#endif
