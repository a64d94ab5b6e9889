/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The far end of an output stream: takes full buffers, compresses them where that is wanted, and
 * writes them to a file, on a thread of its own while the next buffer is filled. Where no thread
 * can be had, or nothing but the last buffer comes, it does so at once. All functions are for one
 * thread.
 */
#ifndef TORSH_EXPORT_OUTPUT_STREAM_WRITER_H
#define TORSH_EXPORT_OUTPUT_STREAM_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct stream_writer;

/*
 * The file stays the caller's. *buffer: the first one to fill, of n_first bytes; later ones have
 * n_later.
 */
struct stream_writer *torsh_stream_writer_create(FILE *file, bool is_compressed, size_t n_first,
						 size_t n_later, char **buffer);

/*
 * Take n bytes of the buffer that was given last. Returns the next one, and the bytes that it has
 * room for.
 */
char *torsh_stream_writer_take(struct stream_writer *writer, size_t n, size_t *capacity);

/*
 * The same for the last buffer; then let go of everything. Returns 0, or the first -errno of all.
 */
int torsh_stream_writer_end(struct stream_writer *writer, size_t n);

#endif
