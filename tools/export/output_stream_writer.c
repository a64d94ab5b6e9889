/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/export/output_stream_writer.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <zlib.h>

#include "tools/base/die.h"

#define GZIP_WINDOW (15 + 16) /* selects a gzip header in zlib */
#define GZIP_MEMORY 9
#define PACKED_BYTES (1u << 18)

enum thread_state { THREAD_NOT_STARTED, THREAD_RUNS, THREAD_REFUSED };

struct buffer {
	char *bytes;
	size_t capacity;
};

struct stream_writer {
	/* Used by the thread while it runs. */
	FILE *file;
	z_stream *deflate; /* NULL: not compressed */
	unsigned char *packed;
	int error; /* 0 or the first -errno */

	/* Used by the caller. */
	struct buffer buffers[2]; /* the second one is allocated when the first is full */
	size_t n_later;
	unsigned filled; /* index of the buffer being filled */
	enum thread_state state;
	pthread_t thread;

	pthread_mutex_t lock; /* guards the fields below */
	pthread_cond_t changed;
	char *full; /* buffer to be written; NULL: none */
	size_t n_full;
	bool is_ended; /* no further buffers follow */
};

static void write_file(struct stream_writer *writer, const void *bytes, size_t n)
{
	if (!writer->error && fwrite(bytes, 1, n, writer->file) != n)
		writer->error = errno ? -errno : -EIO;
}

static void deflate_bytes(struct stream_writer *writer, char *bytes, size_t n, int how)
{
	z_stream *stream = writer->deflate;

	stream->next_in = (Bytef *)bytes;
	stream->avail_in = (uInt)n;
	do {
		stream->next_out = writer->packed;
		stream->avail_out = PACKED_BYTES;
		deflate(stream, how);
		write_file(writer, writer->packed, PACKED_BYTES - stream->avail_out);
	} while (!stream->avail_out);
}

static void put_bytes(struct stream_writer *writer, char *bytes, size_t n)
{
	if (writer->deflate)
		deflate_bytes(writer, bytes, n, Z_NO_FLUSH);
	else
		write_file(writer, bytes, n);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void *run_thread(void *context)
{
	struct stream_writer *writer = context;

	pthread_mutex_lock(&writer->lock);
	for (;;) {
		while (!writer->full && !writer->is_ended)
			pthread_cond_wait(&writer->changed, &writer->lock);
		if (!writer->full)
			break;
		pthread_mutex_unlock(&writer->lock);
		put_bytes(writer, writer->full, writer->n_full);
		pthread_mutex_lock(&writer->lock);
		writer->full = NULL;
		pthread_cond_signal(&writer->changed);
	}
	pthread_mutex_unlock(&writer->lock);
	return NULL;
}

/* Waits until the previous buffer is written. */
static void hand_over(struct stream_writer *writer, char *bytes, size_t n)
{
	pthread_mutex_lock(&writer->lock);
	while (writer->full)
		pthread_cond_wait(&writer->changed, &writer->lock);
	writer->full = bytes;
	writer->n_full = n;
	pthread_cond_signal(&writer->changed);
	pthread_mutex_unlock(&writer->lock);
}

static void end_thread(struct stream_writer *writer)
{
	pthread_mutex_lock(&writer->lock);
	writer->is_ended = true;
	pthread_cond_signal(&writer->changed);
	pthread_mutex_unlock(&writer->lock);
	pthread_join(writer->thread, NULL);
}

/* ---- the caller's side ----------------------------------------------------------------------- */

struct stream_writer *torsh_stream_writer_create(FILE *file, bool is_compressed, size_t n_first,
						 size_t n_later, char **buffer)
{
	struct stream_writer *writer = torsh_need(calloc(1, sizeof(*writer)));

	writer->file = file;
	writer->n_later = n_later;
	writer->buffers[0] =
		(struct buffer){.bytes = torsh_need(malloc(n_first)), .capacity = n_first};
	*buffer = writer->buffers[0].bytes;
	pthread_mutex_init(&writer->lock, NULL);
	pthread_cond_init(&writer->changed, NULL);
	if (!is_compressed)
		return writer;
	writer->packed = torsh_need(malloc(PACKED_BYTES));
	writer->deflate = torsh_need(calloc(1, sizeof(*writer->deflate)));
	/* The fastest level: a trace is so repetitive that higher levels gain little. */
	if (deflateInit2(writer->deflate, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		torsh_die("out of memory");
	return writer;
}

/* Returns the buffer to fill, with its whole capacity; its previous contents may be overwritten. */
static char *empty_buffer(struct stream_writer *writer, size_t *capacity)
{
	struct buffer *buffer = &writer->buffers[writer->filled];

	if (buffer->capacity < writer->n_later) {
		free(buffer->bytes);
		*buffer = (struct buffer){.bytes = torsh_need(malloc(writer->n_later)),
					  .capacity = writer->n_later};
	}
	*capacity = buffer->capacity;
	return buffer->bytes;
}

char *torsh_stream_writer_take(struct stream_writer *writer, size_t n, size_t *capacity)
{
	char *bytes = writer->buffers[writer->filled].bytes;

	if (writer->state == THREAD_NOT_STARTED)
		writer->state = pthread_create(&writer->thread, NULL, run_thread, writer)
					? THREAD_REFUSED
					: THREAD_RUNS;
	if (writer->state == THREAD_REFUSED) {
		put_bytes(writer, bytes, n);
		return empty_buffer(writer, capacity);
	}
	hand_over(writer, bytes, n);
	/* The thread has the buffer that was full, and has released the other one. */
	writer->filled = !writer->filled;
	return empty_buffer(writer, capacity);
}

int torsh_stream_writer_end(struct stream_writer *writer, size_t n)
{
	char *bytes = writer->buffers[writer->filled].bytes;
	int error;

	if (writer->state == THREAD_RUNS)
		end_thread(writer);
	if (writer->deflate) {
		deflate_bytes(writer, bytes, n, Z_FINISH);
		deflateEnd(writer->deflate);
	} else {
		write_file(writer, bytes, n);
	}
	error = writer->error;
	pthread_mutex_destroy(&writer->lock);
	pthread_cond_destroy(&writer->changed);
	free(writer->buffers[0].bytes);
	free(writer->buffers[1].bytes);
	free(writer->packed);
	free(writer->deflate);
	free(writer);
	return error;
}
