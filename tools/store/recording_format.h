/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The layout of a recording file, described in FORMAT.md, as C types. All numbers are little endian
 * and unaligned. Used only by the writer and the reader of recordings.
 */
#ifndef TORSH_STORE_RECORDING_FORMAT_H
#define TORSH_STORE_RECORDING_FORMAT_H

#include <stdint.h>

#define RECORDING_MAGIC UINT64_C(0x6365726873726f74) /* "torshrec" */
#define RECORDING_FORMAT 4u /* what is written; see FORMAT.md for when it moves */
#define RECORDING_FORMAT_OLDEST 1u /* what is still read */

/* The first bytes of the file. */
struct recording_header {
	uint64_t magic;
	uint32_t format;
	uint32_t header_bytes; /* where the first chunk stands */
	uint64_t start_realtime_ns; /* of the writer */
	uint64_t checksum; /* XXH64 (seed 0) of the bytes before */
};

_Static_assert(sizeof(struct recording_header) == 32, "recording_header is part of the format");

#define CHUNK_MAGIC 0x6b686374u /* "tchk" */
#define CHUNK_RAW_MAX (64u << 20)
#define CHUNK_STORED_MAX (CHUNK_RAW_MAX + (1u << 20))

enum chunk_coding { CHUNK_PLAIN, CHUNK_ZSTD };

/* What a chunk holds: bits, so that a reader may pass over what it doesn't need. */
enum chunk_kind {
	CHUNK_TABLES = 1, /* session, processes, modules, functions, addresses, symbols, stacks */
	CHUNK_TOTALS = 2, /* stack totals, heap, live, mappings, threads, series, joint */
	CHUNK_EVENTS = 4,
	CHUNK_END = 8,
	CHUNK_TIMELINE = 16,
	/* beside others: its place may be anywhere; read behind all without this, by number */
	CHUNK_LATER = 32,
	CHUNK_FREE = 64, /* room that is not in use: its stored bytes mean nothing */
	CHUNK_CHECKPOINT = 128, /* beside CHUNK_LATER: its place is another's once it is replaced */
};

struct chunk_header {
	uint32_t magic;
	uint16_t coding; /* enum chunk_coding */
	uint16_t kinds; /* enum chunk_kind, ored */
	uint32_t number; /* 0, 1, 2, ... in the file */
	uint32_t stored_bytes; /* they follow this header */
	uint32_t raw_bytes; /* after decompression: one Chunk of recording.proto */
	uint32_t reserved; /* 0 */
	uint64_t checksum; /* XXH64 (seed 0) of the stored bytes */
	uint64_t header_checksum; /* XXH64 (seed 0) of the header's bytes before */
};

_Static_assert(sizeof(struct chunk_header) == 40, "chunk_header is part of the format");

/* Why a recording has no traffic of memory controllers: MemoryTraffic.problem. */
enum memory_traffic_problem {
	TRAFFIC_COUNTED, /* it has */
	TRAFFIC_NO_SOURCE, /* the kernel shows no such event source */
	TRAFFIC_UNNAMED, /* nor which of its events count bytes */
	TRAFFIC_REFUSED, /* perf_event_open failed */
	TRAFFIC_UNREADABLE, /* from here on: a counter couldn't be read, or went backwards */
};

#endif
