/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/base/regular.h"
#include "tools/ranks/fold/fold_file.h"
#include "tools/ranks/fold/fold_pack.h"

int torsh_fold_map(struct fold_bytes *file, const char *path, char *error, size_t n_error)
{
	struct stat status;
	void *bytes = MAP_FAILED;
	int fd = torsh_open_regular(path), rc = 0;

	*file = (struct fold_bytes){0};
	if (fd < 0) {
		snprintf(error, n_error, "%s can't be read: %s", path,
			 fd == -EINVAL ? "it is no regular file" : strerror(-fd));
		return fd;
	}
	if (fstat(fd, &status) < 0)
		rc = -errno;
	else if (status.st_size == 0)
		rc = -EPROTO;
	else
		bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (!rc && bytes == MAP_FAILED)
		rc = -errno;
	close(fd);
	if (rc) {
		snprintf(error, n_error, "%s %s", path,
			 rc == -EPROTO ? "is empty" : "can't be read");
		return rc;
	}
	*file = (struct fold_bytes){.bytes = bytes, .n = (size_t)status.st_size};
	return 0;
}

void torsh_fold_unmap(struct fold_bytes *file)
{
	if (file->bytes)
		munmap((void *)file->bytes, file->n);
	*file = (struct fold_bytes){0};
}

bool torsh_fold_is_fold(const char *path)
{
	struct fold_header header;
	int fd = torsh_open_regular(path);
	bool is_fold;

	if (fd < 0)
		return false;
	is_fold = pread(fd, &header, sizeof(header), 0) == sizeof(header) &&
		  header.magic == FOLD_MAGIC;
	close(fd);
	return is_fold;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

/* Returns NULL, or what is wrong with a chunk's header. */
static const char *check_chunk(const struct fold_chunk *chunk, size_t n_left)
{
	uint32_t raw_max = chunk->kind == FOLD_CHUNK_RANK ? FOLD_RANK_RAW_MAX : FOLD_RAW_MAX;

	if (chunk->magic != FOLD_CHUNK_MAGIC ||
	    chunk->header_checksum != XXH64(chunk, offsetof(struct fold_chunk, header_checksum), 0))
		return "is damaged";
	if (chunk->raw_bytes > raw_max)
		return "is damaged: a part of it would be too large";
	return chunk->stored_bytes > n_left ? "is cut off" : NULL;
}

/* Returns the chunk's message, *n bytes, or NULL; the caller frees it. */
static uint8_t *read_message(const struct fold_chunk *chunk, const uint8_t *stored)
{
	uint8_t *raw;
	size_t n;

	if (XXH64(stored, chunk->stored_bytes, 0) != chunk->checksum)
		return NULL;
	raw = torsh_need(malloc(chunk->raw_bytes + 1));
	n = ZSTD_decompress(raw, chunk->raw_bytes, stored, chunk->stored_bytes);
	if (n == chunk->raw_bytes)
		return raw;
	free(raw);
	return NULL;
}

static void add_entry(struct fold_entries *entries, const struct fold_chunk *chunk, uint32_t input,
		      uint64_t offset)
{
	entries->items = torsh_array_reserve(entries->items, entries->n, &entries->n_room,
					     sizeof(*entries->items));
	entries->items[entries->n++] = (struct fold_entry){.rank = chunk->rank,
							   .identity = chunk->identity,
							   .offset = offset,
							   .stored_bytes = chunk->stored_bytes,
							   .input = input};
}

static const char *read_shared(struct fold *fold, const struct fold_chunk *chunk,
			       const uint8_t *stored)
{
	uint8_t *raw = read_message(chunk, stored);
	struct fold *checked = fold ? NULL : torsh_fold_create();
	int rc = raw ? torsh_fold_unpack(fold ? fold : checked, raw, chunk->raw_bytes) : -EPROTO;

	torsh_fold_destroy(checked);
	free(raw);
	return rc ? "is damaged: its tables do not fit together" : NULL;
}

/* A chunk, and where the reader is. */
struct fold_cursor {
	struct fold *fold;
	struct fold_entries *entries;
	uint32_t input;
	const uint8_t *bytes;
	size_t at, n_bytes;
	uint64_t n_chunks;
	bool is_at_end;
};

/* Returns NULL, or what is wrong. */
static const char *read_chunk(struct fold_cursor *cursor)
{
	struct fold_chunk chunk;
	const uint8_t *stored = cursor->bytes + cursor->at + sizeof(chunk);
	const char *problem;

	if (cursor->n_bytes - cursor->at < sizeof(chunk))
		return "is cut off";
	memcpy(&chunk, cursor->bytes + cursor->at, sizeof(chunk));
	problem = check_chunk(&chunk, cursor->n_bytes - cursor->at - sizeof(chunk));
	if (problem)
		return problem;
	switch (chunk.kind) {
	case FOLD_CHUNK_RANK:
		add_entry(cursor->entries, &chunk, cursor->input, cursor->at);
		break;
	case FOLD_CHUNK_SHARED:
		problem = read_shared(cursor->fold, &chunk, stored);
		break;
	case FOLD_CHUNK_END:
		cursor->is_at_end = true;
		if (chunk.rank != cursor->n_chunks)
			problem = "is damaged: a part of it is missing";
		break;
	default:
		break;
	}
	cursor->n_chunks++;
	cursor->at += sizeof(chunk) + chunk.stored_bytes;
	return problem;
}

int torsh_fold_read_bytes(struct fold *fold, struct fold_entries *entries, uint32_t input,
			  const uint8_t *bytes, size_t n_bytes, char *error, size_t n_error)
{
	struct fold_cursor cursor = {.fold = fold,
				     .entries = entries,
				     .input = input,
				     .bytes = bytes,
				     .at = sizeof(struct fold_header),
				     .n_bytes = n_bytes};
	struct fold_header header = {0};
	const char *problem = NULL;

	if (n_bytes >= sizeof(header))
		memcpy(&header, bytes, sizeof(header));
	if (header.magic != FOLD_MAGIC) {
		snprintf(error, n_error, "is no fold: torsh fold makes one of a recording");
		return -EPROTO;
	}
	if (header.format != FOLD_FORMAT) {
		snprintf(error, n_error, "has format %u, and this torsh reads format %u",
			 header.format, FOLD_FORMAT);
		return -EPROTO;
	}
	while (!problem && !cursor.is_at_end)
		problem = read_chunk(&cursor);
	if (!problem && cursor.at != n_bytes)
		problem = "has something behind its end";
	if (problem)
		snprintf(error, n_error, "%s", problem);
	return problem ? -EPROTO : 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

Torsh__FoldRank *torsh_fold_entry_rank(const struct fold_bytes *file,
				       const struct fold_entry *entry)
{
	struct fold_chunk chunk;
	Torsh__FoldRank *rank;
	uint8_t *raw;

	memcpy(&chunk, file->bytes + entry->offset, sizeof(chunk));
	raw = read_message(&chunk, file->bytes + entry->offset + sizeof(chunk));
	rank = raw ? torsh_fold_unpack_rank(raw, chunk.raw_bytes) : NULL;
	free(raw);
	return rank;
}

static int compare_entries(const void *a, const void *b)
{
	const struct fold_entry *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->identity > y->identity) - (x->identity < y->identity);
}

size_t torsh_fold_sort_entries(struct fold_entries *entries)
{
	if (entries->n)
		qsort(entries->items, entries->n, sizeof(*entries->items), compare_entries);
	for (size_t i = 1; i < entries->n; i++) {
		if (compare_entries(&entries->items[i - 1], &entries->items[i]) == 0)
			return i;
	}
	return SIZE_MAX;
}
