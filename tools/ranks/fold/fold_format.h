/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The layout of a fold's file, described in FOLD.md. All numbers are little endian. */
#ifndef TORSH_RANKS_FOLD_FOLD_FORMAT_H
#define TORSH_RANKS_FOLD_FOLD_FORMAT_H

#include <stdint.h>

#define FOLD_MAGIC UINT64_C(0x6c6f666873726f74) /* "torshfol" */
#define FOLD_FORMAT 1u
#define FOLD_CHUNK_MAGIC 0x6b686366u /* "fchk" */
#define FOLD_RAW_MAX (64u << 20)
#define FOLD_RANK_RAW_MAX (4u << 20)
#define FOLD_MEMORY_FACTOR 24u /* a message may take so many times its bytes in memory */

struct fold_header {
	uint64_t magic;
	uint32_t format;
	uint32_t reserved; /* 0 */
};

_Static_assert(sizeof(struct fold_header) == 16, "fold_header is part of the format");

enum fold_chunk_kind { FOLD_CHUNK_RANK = 1, FOLD_CHUNK_SHARED, FOLD_CHUNK_END };

struct fold_chunk {
	uint32_t magic;
	uint32_t kind;
	uint32_t stored_bytes; /* one zstd frame; they follow */
	uint32_t raw_bytes;
	uint64_t rank; /* and 1; 0: it has none. Of the end: the number of chunks before it */
	uint64_t identity; /* of a process: XXH64 of its host, pid, clock and start */
	uint64_t checksum; /* XXH64 (seed 0) of the stored bytes */
	uint64_t header_checksum; /* XXH64 (seed 0) of the bytes before */
};

_Static_assert(sizeof(struct fold_chunk) == 48, "fold_chunk is part of the format");

#endif
