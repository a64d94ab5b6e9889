/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Reads a recording chunk by chunk, in the order of the file. Every length and checksum is
 * verified: a file that was cut, damaged or made up yields the chunks that are whole and a sentence
 * about the rest, never a crash.
 *
 * One reader belongs to one thread. A recording that is still being written can be read: what is
 * there now is a recording.
 */
#ifndef TORSH_STORE_RECORDING_READ_H
#define TORSH_STORE_RECORDING_READ_H

#include <stddef.h>
#include <stdint.h>

#include "recording.pb-c.h"
#include "tools/store/recording_format.h"

struct recording_reader;

/*
 * Open the recording at path. Returns 0, -errno of the open, or -EPROTO when this is no recording
 * of a format that this version reads; then error (may be NULL) holds a sentence.
 */
int torsh_recording_open(struct recording_reader **reader, const char *path, char *error,
			 size_t n_error);

/* The same over bytes in memory, which stay the caller's and must outlive the reader. */
int torsh_recording_open_bytes(struct recording_reader **reader, const void *bytes, size_t n_bytes,
			       char *error, size_t n_error);

/* Free the reader. NULL: nothing. */
void torsh_recording_close(struct recording_reader *reader);

/*
 * Leave out chunks that hold nothing but these kinds (enum chunk_kind), e.g. CHUNK_EVENTS: they
 * cost nothing then.
 */
void torsh_recording_skip(struct recording_reader *reader, uint32_t kinds);

/* Read as if the file ended after n_bytes, where it is longer. */
void torsh_recording_end_at(struct recording_reader *reader, uint64_t n_bytes);

/*
 * The next whole chunk. Returns 1 with *chunk the caller's (torsh__chunk__free_unpacked(chunk,
 * NULL)), 0 at the end, or -ENOMEM. Damage is stepped over: torsh_recording_problem has it
 * afterwards.
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

/* How far the reader is, in bytes of the file. */
uint64_t torsh_recording_position(const struct recording_reader *reader);

/* Does a writer still hold the recording at path? 1, 0, or -errno. */
int torsh_recording_is_being_written(const char *path);

#endif
