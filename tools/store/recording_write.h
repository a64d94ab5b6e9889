/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Appends chunks to a recording without filling the disk: a size limit and a reserve of free space
 * stop first the events, then the checkpoints; space for the last chunks is reserved. A chunk is
 * written completely or not at all.
 *
 * Errors never end the writing process: they stop the recording, and torsh_recording_stopped
 * returns the reason.
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

/* Which chunks are written when space is short. */
enum recording_priority {
	RECORDING_EVENTS,
	RECORDING_CHECKPOINT, /* a later one has the same and more */
	RECORDING_LAST, /* final rows */
};

struct recording_file;

/*
 * Begin a recording in the empty file fd, which stays the caller's. Returns NULL if memory runs
 * out; if the header cannot be written, the recording starts stopped.
 */
struct recording_file *torsh_recording_create(int fd, const struct recording_limits *limits,
					      uint64_t start_realtime_ns);

/*
 * Write a chunk that replaces earlier ones of this function and may be replaced itself: it is read
 * after all appended chunks. One that is not RECORDING_LAST reuses a free extent if one is large
 * enough. Pass *extent to torsh_recording_free_extent once a later chunk contains everything in
 * this one. Returns as torsh_recording_append.
 */
int torsh_recording_put(struct recording_file *file, Torsh__Chunk *chunk,
			enum recording_priority priority, struct extent *extent);

/* Free the extent of a chunk that a later one replaces. */
void torsh_recording_free_extent(struct recording_file *file, struct extent extent);

/* Likewise where nothing replaces the chunk: no reader that begins later finds it. */
void torsh_recording_drop_extent(struct recording_file *file, struct extent extent);

/* A checkpoint is complete: extents that were freed before the previous one may be reused. */
void torsh_recording_settle(struct recording_file *file);

/* Cut off the reserved room and free the file; the descriptor stays open. */
void torsh_recording_finish(struct recording_file *file);

/*
 * Append a chunk, which is unchanged afterwards. Returns 0, -ENOSPC at a limit or a full disk,
 * -E2BIG if the chunk is too large, or another -errno.
 */
int torsh_recording_append(struct recording_file *file, Torsh__Chunk *chunk,
			   enum recording_priority priority);

/*
 * Returns NULL, or why chunks of this priority are no longer written: a sentence without a full
 * stop.
 */
const char *torsh_recording_stopped(const struct recording_file *file,
				    enum recording_priority priority);

/* Returns NULL, or why one of the last chunks is not in the recording. */
const char *torsh_recording_missed(const struct recording_file *file);

/* Bytes of the file so far. */
uint64_t torsh_recording_written(const struct recording_file *file);

#endif
