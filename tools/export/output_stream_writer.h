/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The writing side of an output stream: compresses full buffers if requested, and writes them to a
 * file, on a thread, while the next buffer is filled. Without a thread, or with the last buffer
 * only, it writes immediately. All functions are for one thread.
 */
#ifndef TORSH_EXPORT_OUTPUT_STREAM_WRITER_H
#define TORSH_EXPORT_OUTPUT_STREAM_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct stream_writer;

/*
 * Create a writer; the file stays the caller's. *buffer: the first one to fill, of n_first bytes;
 * later ones have n_later.
 */
struct stream_writer *torsh_stream_writer_create(FILE *file, bool is_compressed, size_t n_first,
						 size_t n_later, char **buffer);

/* Write n bytes of the current buffer. Returns the next buffer, and its capacity. */
char *torsh_stream_writer_take(struct stream_writer *writer, size_t n, size_t *capacity);

/* Write the last buffer, and free everything. Returns 0, or the first -errno. */
int torsh_stream_writer_end(struct stream_writer *writer, size_t n);

#endif
