/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Appends chunks to a recording, and never fills a disk: a greatest size and a reserve of free
 * space stop first the events, then the checkpoints; for the last chunks some room is kept. A chunk
 * is there as a whole or not at all.
 *
 * Errors never end the writing process: they stop the recording, and torsh_recording_stopped says
 * why.
 */
#ifndef TORSH_STORE_RECORDING_WRITE_H
#define TORSH_STORE_RECORDING_WRITE_H

#include <stdint.h>

#include "recording.pb-c.h"
#include "tools/store/free_extents.h"
#include "tools/store/recording_format.h"

struct recording_limits {
	uint64_t max_bytes; /* of the file; 0: none */
	uint64_t reserve_bytes; /* of free space on its file system */
};

/* Which chunks are written when there is little room. */
enum recording_priority {
	RECORDING_EVENTS,
	RECORDING_CHECKPOINT, /* a later one has the same and more */
	RECORDING_LAST, /* final rows */
};

struct recording_file;

/*
 * Begin a recording in the empty file fd, which stays the caller's. NULL when there is no memory;
 * when the header can't be written the recording is stopped from the start.
 */
struct recording_file *torsh_recording_create(int fd, const struct recording_limits *limits,
					      uint64_t start_realtime_ns);

/*
 * Write a chunk that replaces earlier ones of this function, and may be replaced itself: it is read
 * after all that are appended. One of RECORDING_CHECKPOINT goes into a free extent where one is
 * large enough. *extent is what torsh_recording_free_extent takes once a later chunk has all that
 * this one has. Returns as torsh_recording_append.
 */
int torsh_recording_put(struct recording_file *file, Torsh__Chunk *chunk,
			enum recording_priority priority, struct extent *extent);

/* Free the extent of a chunk that a later one replaces. */
void torsh_recording_free_extent(struct recording_file *file, struct extent extent);

/* A checkpoint is whole: extents that were freed before the one before it may be used. */
void torsh_recording_settle(struct recording_file *file);

/* Cut off the reserved room and free the file; the descriptor stays open. */
void torsh_recording_finish(struct recording_file *file);

/*
 * Append a chunk, which is the same afterwards. Returns 0, -ENOSPC at a limit or a full disk,
 * -E2BIG when it is larger than a chunk may be, or another -errno.
 */
int torsh_recording_append(struct recording_file *file, Torsh__Chunk *chunk,
			   enum recording_priority priority);

/* NULL, or why chunks of this priority are no longer written: a sentence without a full stop. */
const char *torsh_recording_stopped(const struct recording_file *file,
				    enum recording_priority priority);

/* NULL, or why one of the last chunks is not in the recording. */
const char *torsh_recording_missed(const struct recording_file *file);

/* Bytes of the file so far. */
uint64_t torsh_recording_written(const struct recording_file *file);

#endif
