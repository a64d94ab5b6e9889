/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Reads a recording chunk by chunk, in file order. Every length and checksum is verified: a
 * truncated, damaged or forged file yields the intact chunks and a sentence about the rest, never a
 * crash.
 *
 * Each reader is used by one thread. An unfinished recording can be read: its current contents are
 * a valid recording.
 */
#ifndef TORSH_STORE_RECORDING_READ_H
#define TORSH_STORE_RECORDING_READ_H

#include <stddef.h>
#include <stdint.h>

#include "recording.pb-c.h"
#include "tools/store/recording_format.h"

struct packed_messages;
struct recording_reader;

/*
 * Open the recording at path. Returns 0, the -errno of the open, or -EPROTO if it is not a
 * recording of a supported format; then error (may be NULL) contains a sentence.
 */
int torsh_recording_open(struct recording_reader **reader, const char *path, char *error,
			 size_t n_error);

/* Open a recording in memory. The bytes stay the caller's and must outlive the reader. */
int torsh_recording_open_bytes(struct recording_reader **reader, const void *bytes, size_t n_bytes,
			       char *error, size_t n_error);

/* Free the reader. NULL is ignored. */
void torsh_recording_close(struct recording_reader *reader);

/*
 * Skip chunks that contain only these kinds (enum chunk_kind), e.g. CHUNK_EVENTS; skipped chunks
 * are not read.
 */
void torsh_recording_skip(struct recording_reader *reader, uint32_t kinds);

/*
 * Leave these members out of each chunk (CHUNK_MEMBER of chunk_members.h, ored): their rows are
 * neither unpacked nor checked.
 */
void torsh_recording_leave_out(struct recording_reader *reader, uint32_t members);

/*
 * Leave out what checkpoints have of stacks' totals, live blocks, growth and the session-wide peak:
 * for a recording with End.complete, which has the last rows of all of these too.
 */
void torsh_recording_leave_replaced(struct recording_reader *reader);

/*
 * Keep stacks and stacks' totals packed where they are plain: chunks don't have them, and
 * torsh_recording_packed has.
 */
void torsh_recording_keep_packed(struct recording_reader *reader);

/* Returns what stayed packed of the chunk read last, until the next one is read. */
const struct packed_messages *torsh_recording_packed(const struct recording_reader *reader);

/* Read as if the file ended after n_bytes, if it is longer. */
void torsh_recording_end_at(struct recording_reader *reader, uint64_t n_bytes);

/*
 * Read the next intact chunk. Returns 1 with *chunk, which the caller frees
 * (torsh__chunk__free_unpacked(chunk, NULL)), 0 at the end, or -ENOMEM. Damaged chunks are skipped
 * and described by torsh_recording_problem.
 */
int torsh_recording_next(struct recording_reader *reader, Torsh__Chunk **chunk);

/*
 * NULL, or what was found wrong so far, as a sentence without a full stop: "the last 312 bytes are
 * a torn chunk", "1 damaged chunk (4,096 bytes) was left out". It is complete once
 * torsh_recording_next has returned 0.
 */
const char *torsh_recording_problem(const struct recording_reader *reader);

/* Bytes of the file. */
uint64_t torsh_recording_size(const struct recording_reader *reader);

/* Returns the reader's position in bytes of the file. */
uint64_t torsh_recording_position(const struct recording_reader *reader);

/* Returns 1 if a writer still holds the recording at path, 0 if not, or -errno. */
int torsh_recording_is_being_written(const char *path);

#endif
