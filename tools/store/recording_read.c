/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/store/recording_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

#include "tools/base/containers/array.h"
#include "tools/base/regular.h"
#include "tools/store/chunk_members.h"
#include "tools/store/delta.h"

#define WINDOW_BYTES (1u << 20)
/*
 * Limits on the decompressed chunks of a file, and on a message's memory, per byte of the file.
 * They are far above what any writer produces, and low enough that a file of some KB can't expand
 * to gigabytes. Events are decoded one at a time, so that their number is not limited.
 */
#define RAW_BYTES_ANYWAY (UINT64_C(4) << 20)
#define RAW_BYTES_A_BYTE 256u
#define MESSAGE_BYTES_ANYWAY (UINT64_C(1) << 20)
#define MESSAGE_BYTES_A_BYTE 24u

/* A complete chunk that is read later. */
struct later {
	uint32_t number;
	uint64_t at;
};

/*
 * A reader of bytes has all of them in memory. A reader of a file reads piece by piece with pread
 * and not with mmap, because the file may be truncated at any time.
 */
struct recording_reader {
	const uint8_t *bytes; /* NULL: read from fd */
	int fd;
	uint64_t n_bytes, at;
	uint8_t *window; /* the bytes read last, with room for n_window */
	size_t n_window;
	uint32_t skip;
	uint32_t left_out; /* CHUNK_MEMBER of chunk_members.h, ored */
	uint32_t replaced; /* likewise, of checkpoints */
	bool keeps_packed;
	struct packed_messages packed; /* of the chunk read last; they lie in raw, or in window */
	uint8_t *rest; /* of that chunk, with room for n_rest */
	size_t n_rest;
	struct later *later; /* those of kind CHUNK_LATER */
	size_t n_later, n_later_room, n_later_read;
	uint8_t *raw;
	size_t n_raw;
	uint64_t n_raw_read; /* bytes counted against the limit */
	uint32_t n_damaged; /* places where chunks were skipped */
	uint64_t n_lost; /* bytes skipped there */
	uint64_t n_torn; /* bytes at the end that form no whole chunk */
	char problem[160];
};

static int refuse(char *error, size_t n_error, const char *format, ...)
{
	va_list arguments;

	if (!error)
		return -EPROTO;
	va_start(arguments, format);
	vsnprintf(error, n_error, format, arguments);
	va_end(arguments);
	return -EPROTO;
}

/* Returns room for n bytes, or NULL; the previous contents may be lost. */
static uint8_t *room_for(uint8_t **bytes, size_t *n_room, size_t n)
{
	if (n <= *n_room)
		return *bytes;
	free(*bytes);
	*bytes = malloc(n);
	*n_room = *bytes ? n : 0;
	return *bytes;
}

/*
 * Returns n bytes at `at`, which lies in the file, or NULL if they can't be read. Valid until the
 * next call.
 */
static const uint8_t *fetch(struct recording_reader *reader, uint64_t at, size_t n)
{
	uint8_t *window;
	size_t done = 0;

	if (reader->bytes)
		return reader->bytes + at;
	window = room_for(&reader->window, &reader->n_window, n ? n : 1);
	while (window && done < n) {
		ssize_t got = pread(reader->fd, window + done, n - done, (off_t)(at + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return NULL;
		done += (size_t)got;
	}
	return window;
}

/* Returns 0 and moves to the first chunk, or -EPROTO with a message. */
static int read_start(struct recording_reader *reader, char *error, size_t n_error)
{
	struct recording_header header;
	const uint8_t *bytes;

	if (!reader->n_bytes)
		return refuse(
			error, n_error,
			"it is empty: its writer was killed, or could not start; torsh-writer, "
			"started by hand, reports whether it can run");
	if (reader->n_bytes < sizeof(header))
		return refuse(error, n_error, "it is too short for a recording");
	bytes = fetch(reader, 0, sizeof(header));
	if (!bytes)
		return refuse(error, n_error, "it can't be read");
	memcpy(&header, bytes, sizeof(header));
	if (header.magic != RECORDING_MAGIC)
		return refuse(error, n_error, "it is not a recording of torsh");
	if (header.format < RECORDING_FORMAT_OLDEST || header.format > RECORDING_FORMAT)
		return refuse(error, n_error,
			      "its format is %u, this version of torsh reads %u to %u",
			      header.format, RECORDING_FORMAT_OLDEST, RECORDING_FORMAT);
	if (header.checksum != XXH64(&header, offsetof(struct recording_header, checksum), 0) ||
	    header.header_bytes < sizeof(header) || header.header_bytes > reader->n_bytes)
		return refuse(error, n_error, "its header is damaged");
	reader->at = header.header_bytes;
	return 0;
}

static int open_reader(struct recording_reader **reader, const struct recording_reader *source,
		       char *error, size_t n_error)
{
	struct recording_reader *opened = malloc(sizeof(*opened));
	int result;

	if (!opened)
		return -ENOMEM;
	*opened = *source;
	result = read_start(opened, error, n_error);
	if (!result) {
		*reader = opened;
		return 0;
	}
	free(opened->window);
	free(opened);
	return result;
}

int torsh_recording_open_bytes(struct recording_reader **reader, const void *bytes, size_t n_bytes,
			       char *error, size_t n_error)
{
	/* Not NULL even if empty, because NULL means that fd is read. */
	const struct recording_reader source = {
		.bytes = bytes ? bytes : "", .n_bytes = n_bytes, .fd = -1};

	return open_reader(reader, &source, error, n_error);
}

int torsh_recording_open(struct recording_reader **reader, const char *path, char *error,
			 size_t n_error)
{
	struct recording_reader source = {.fd = torsh_open_regular(path)};
	struct stat status;
	int result = 0;

	if (source.fd == -EINVAL)
		return refuse(error, n_error, "it is not a file");
	if (source.fd < 0)
		return source.fd;
	if (fstat(source.fd, &status))
		result = -errno;
	source.n_bytes = result ? 0 : (uint64_t)status.st_size;
	if (!result)
		result = open_reader(reader, &source, error, n_error);
	if (result)
		close(source.fd);
	return result;
}

void torsh_recording_close(struct recording_reader *reader)
{
	if (!reader)
		return;
	if (reader->fd >= 0)
		close(reader->fd);
	free(reader->later);
	free(reader->window);
	free(reader->raw);
	free(reader->rest);
	free(reader->packed.items);
	free(reader);
}

void torsh_recording_skip(struct recording_reader *reader, uint32_t kinds)
{
	reader->skip = kinds;
}

void torsh_recording_leave_out(struct recording_reader *reader, uint32_t members)
{
	reader->left_out = members;
}

void torsh_recording_leave_replaced(struct recording_reader *reader)
{
	reader->replaced = CHUNK_MEMBER(STACK_TOTALS) | CHUNK_MEMBER(LIVE) | CHUNK_MEMBER(GROWTH) |
			   CHUNK_MEMBER(JOINT);
}

void torsh_recording_keep_packed(struct recording_reader *reader)
{
	reader->keeps_packed = true;
}

const struct packed_messages *torsh_recording_packed(const struct recording_reader *reader)
{
	return &reader->packed;
}

void torsh_recording_end_at(struct recording_reader *reader, uint64_t n_bytes)
{
	if (reader->n_bytes > n_bytes && n_bytes >= reader->at)
		reader->n_bytes = n_bytes;
}

uint64_t torsh_recording_size(const struct recording_reader *reader)
{
	return reader->n_bytes;
}

uint64_t torsh_recording_position(const struct recording_reader *reader)
{
	return reader->at;
}

/* Reads the header of a complete chunk: its payload lies within the file. */
static bool read_header(struct recording_reader *reader, uint64_t at, struct chunk_header *header)
{
	const uint8_t *bytes;

	if (reader->n_bytes - at < sizeof(*header))
		return false;
	bytes = fetch(reader, at, sizeof(*header));
	if (!bytes)
		return false;
	memcpy(header, bytes, sizeof(*header));
	return header->magic == CHUNK_MAGIC &&
	       header->header_checksum ==
		       XXH64(header, offsetof(struct chunk_header, header_checksum), 0) &&
	       header->raw_bytes <= CHUNK_RAW_MAX && header->stored_bytes <= CHUNK_STORED_MAX &&
	       header->stored_bytes <= reader->n_bytes - at - sizeof(*header);
}

/* One decompressor per thread: it takes 100 KB, and a report reads a recording several times. */
static ZSTD_DCtx *decompressor(void)
{
	static _Thread_local ZSTD_DCtx *made;

	if (!made)
		made = ZSTD_createDCtx();
	return made;
}

/* Returns the stored bytes of a chunk, or NULL if they are damaged. */
static const uint8_t *read_stored(struct recording_reader *reader,
				  const struct chunk_header *header, uint64_t at)
{
	const uint8_t *stored = fetch(reader, at + sizeof(*header), header->stored_bytes);

	return stored && header->checksum == XXH64(stored, header->stored_bytes, 0) ? stored : NULL;
}

/* Returns the decompressed bytes of a chunk, or NULL if it is damaged. */
static const uint8_t *read_payload(struct recording_reader *reader,
				   const struct chunk_header *header, uint64_t at)
{
	const uint8_t *stored = read_stored(reader, header, at);
	ZSTD_DCtx *zstd;

	if (!stored)
		return NULL;
	if (header->coding == CHUNK_PLAIN)
		return header->raw_bytes == header->stored_bytes ? stored : NULL;
	if (header->coding != CHUNK_ZSTD ||
	    !room_for(&reader->raw, &reader->n_raw, header->raw_bytes + 1u))
		return NULL;
	zstd = decompressor();
	if (!zstd)
		return NULL;
	if (ZSTD_decompressDCtx(zstd, reader->raw, header->raw_bytes, stored,
				header->stored_bytes) != header->raw_bytes)
		return NULL;
	return reader->raw;
}

/* Returns whether the chunk exceeds what all chunks of a file of this size can hold. */
static bool is_beyond_belief(struct recording_reader *reader, const struct chunk_header *header)
{
	uint64_t n_most = RAW_BYTES_ANYWAY + RAW_BYTES_A_BYTE * reader->n_bytes;

	if (header->kinds == CHUNK_EVENTS)
		return false;
	if (header->raw_bytes > n_most - reader->n_raw_read)
		return true;
	reader->n_raw_read += header->raw_bytes;
	return false;
}

/* Allocate memory of a message and count it: NULL above the limit. */
static void *allocate_counted(void *n_left, size_t n)
{
	uint64_t *left = n_left;

	if (n > *left)
		return NULL;
	*left -= n;
	return malloc(n);
}

static void free_counted(void *n_left, void *memory)
{
	(void)n_left;
	free(memory);
}

/*
 * Take from the *n bytes of a chunk what stays packed, if anything does and it is plain. Returns
 * what is to be unpacked.
 */
static const uint8_t *split(struct recording_reader *reader, const uint8_t *payload, size_t *n)
{
	size_t n_rest;

	reader->packed.n = 0;
	if (!reader->keeps_packed || !room_for(&reader->rest, &reader->n_rest, *n + 1u))
		return payload;
	n_rest = torsh_chunk_split(payload, *n, &reader->packed, reader->rest);
	if (n_rest == SIZE_MAX)
		return payload;
	*n = n_rest;
	return reader->rest;
}

/* Returns the chunk without these members, or NULL if it is damaged or memory is short. */
static Torsh__Chunk *unpack(struct recording_reader *reader, const uint8_t *payload, size_t n,
			    uint32_t left_out)
{
	uint64_t n_left = MESSAGE_BYTES_ANYWAY + MESSAGE_BYTES_A_BYTE * (uint64_t)n;
	ProtobufCAllocator allocator = {
		.alloc = allocate_counted, .free = free_counted, .allocator_data = &n_left};

	if (left_out && payload != reader->raw) {
		if (!room_for(&reader->raw, &reader->n_raw, n + 1u))
			return NULL;
		payload = memcpy(reader->raw, payload, n);
	}
	if (left_out)
		n = torsh_chunk_leave_out(reader->raw, n, left_out);
	payload = split(reader, payload, &n);
	return torsh__chunk__unpack(&allocator, n, payload);
}

/* Returns the next place from `at` on where a chunk's magic is, or the end. */
static uint64_t find_magic(struct recording_reader *reader, uint64_t at)
{
	const uint32_t magic = CHUNK_MAGIC;

	while (reader->n_bytes - at >= sizeof(magic)) {
		size_t n = reader->n_bytes - at < WINDOW_BYTES ? (size_t)(reader->n_bytes - at)
							       : WINDOW_BYTES;
		const uint8_t *bytes = fetch(reader, at, n);
		const uint8_t *found = bytes ? memmem(bytes, n, &magic, sizeof(magic)) : NULL;

		if (found)
			return at + (uint64_t)(found - bytes);
		at += n - (sizeof(magic) - 1);
	}
	return reader->n_bytes;
}

/* Returns the next place from `at` on where a whole chunk is, or the end. */
static uint64_t find_chunk(struct recording_reader *reader, uint64_t at)
{
	struct chunk_header header;

	while ((at = find_magic(reader, at)) < reader->n_bytes) {
		if (read_header(reader, at, &header) &&
		    (header.kinds & CHUNK_FREE || read_payload(reader, &header, at)))
			return at;
		at++;
	}
	return reader->n_bytes;
}

/* No whole chunk is here: skip to the next one. */
static void step_over(struct recording_reader *reader)
{
	uint64_t next = find_chunk(reader, reader->at + 1);

	if (next == reader->n_bytes) {
		reader->n_torn = next - reader->at;
	} else {
		reader->n_damaged++;
		reader->n_lost += next - reader->at;
	}
	reader->at = next;
}

static bool is_left_out(const struct recording_reader *reader, uint32_t kinds)
{
	uint32_t content = kinds & ~(uint32_t)(CHUNK_LATER | CHUNK_CHECKPOINT);

	return kinds & CHUNK_FREE || kinds & reader->skip & CHUNK_CHECKPOINT ||
	       (content && !(content & ~reader->skip));
}

/* Read the chunk later. Returns 0 or -ENOMEM. */
static int put_off(struct recording_reader *reader, const struct chunk_header *header)
{
	if (reader->n_later == reader->n_later_room) {
		struct later *larger = torsh_array_try_grow(reader->later, reader->n_later + 1,
							    &reader->n_later_room, sizeof(*larger));

		if (!larger)
			return -ENOMEM;
		reader->later = larger;
	}
	reader->later[reader->n_later++] =
		(struct later){.number = header->number, .at = reader->at};
	return 0;
}

static int compare_later(const void *a, const void *b)
{
	const struct later *one = a, *other = b;

	return (one->number > other->number) - (one->number < other->number);
}

/* Members that are left out of a chunk of these kinds. */
static uint32_t left_out_of(const struct recording_reader *reader, uint32_t kinds)
{
	return reader->left_out | (kinds & CHUNK_CHECKPOINT ? reader->replaced : 0);
}

/* Returns true if nothing is left of a checkpoint's chunk of totals. */
static bool is_replaced(const struct recording_reader *reader, uint32_t kinds)
{
	return reader->replaced && kinds == (CHUNK_TOTALS | CHUNK_LATER | CHUNK_CHECKPOINT) &&
	       reader->left_out & CHUNK_MEMBER(MOMENTS) &&
	       reader->left_out & CHUNK_MEMBER(WINDOW_PEAK);
}

static Torsh__Chunk *read_chunk(struct recording_reader *reader, const struct chunk_header *header,
				uint64_t at)
{
	const uint8_t *payload =
		is_beyond_belief(reader, header) ? NULL : read_payload(reader, header, at);
	Torsh__Chunk *chunk = payload ? unpack(reader, payload, header->raw_bytes,
					       left_out_of(reader, header->kinds))
				      : NULL;

	if (chunk)
		torsh_delta_decode(chunk);
	return chunk;
}

/*
 * Chunks are read in the order in which they were written. If a running writer has since reused a
 * chunk's place, it holds another chunk.
 */
static int next_of_later(struct recording_reader *reader, Torsh__Chunk **chunk)
{
	if (!reader->n_later_read && reader->n_later)
		qsort(reader->later, reader->n_later, sizeof(*reader->later), compare_later);
	while (reader->n_later_read < reader->n_later) {
		const struct later *later = &reader->later[reader->n_later_read++];
		struct chunk_header header;

		*chunk = NULL;
		if (read_header(reader, later->at, &header) && header.number == later->number) {
			if (is_replaced(reader, header.kinds))
				continue;
			*chunk = read_chunk(reader, &header, later->at);
		}
		if (*chunk)
			return 1;
		reader->n_damaged++;
	}
	return 0;
}

int torsh_recording_next(struct recording_reader *reader, Torsh__Chunk **chunk)
{
	while (reader->at < reader->n_bytes) {
		struct chunk_header header;

		if (!read_header(reader, reader->at, &header)) {
			step_over(reader);
			continue;
		}
		if (is_left_out(reader, header.kinds)) {
			reader->at += sizeof(header) + header.stored_bytes;
			continue;
		}
		if (header.kinds & CHUNK_LATER) {
			if (!read_stored(reader, &header, reader->at)) {
				step_over(reader);
				continue;
			}
			if (put_off(reader, &header))
				return -ENOMEM;
			reader->at += sizeof(header) + header.stored_bytes;
			continue;
		}
		*chunk = read_chunk(reader, &header, reader->at);
		if (!*chunk) {
			step_over(reader);
			continue;
		}
		reader->at += sizeof(header) + header.stored_bytes;
		return 1;
	}
	return next_of_later(reader, chunk);
}

const char *torsh_recording_problem(const struct recording_reader *reader)
{
	struct recording_reader *mutable = (struct recording_reader *)(uintptr_t)reader;
	size_t n = 0;

	if (!reader->n_damaged && !reader->n_torn)
		return NULL;
	if (reader->n_damaged)
		n = (size_t)snprintf(
			mutable->problem, sizeof(mutable->problem),
			"%u damaged %s (%llu bytes) in the middle left out%s", reader->n_damaged,
			reader->n_damaged == 1 ? "part was" : "parts were",
			(unsigned long long)reader->n_lost, reader->n_torn ? "; " : "");
	if (reader->n_torn)
		snprintf(mutable->problem + n, sizeof(mutable->problem) - n,
			 "the last %llu bytes are no whole chunk: the writer was cut off there",
			 (unsigned long long)reader->n_torn);
	return reader->problem;
}

int torsh_recording_is_being_written(const char *path)
{
	int fd = torsh_open_regular(path), result;

	if (fd < 0)
		return fd;
	result = flock(fd, LOCK_SH | LOCK_NB) ? (errno == EWOULDBLOCK ? 1 : -errno) : 0;
	close(fd);
	return result;
}
