/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>
#include <zstd.h>

#include "tools/base/die.h"
#include "tools/base/private_file.h"
#include "tools/ranks/fold/fold_file.h"
#include "tools/ranks/fold/fold_pack.h"

#define LEVEL 3 /* of zstd: the same bytes of one release of it */

struct fold_writer {
	const char *path;
	struct private_file file;
	FILE *out;
	uint64_t n_chunks;
};

static void put(struct fold_writer *writer, const void *bytes, size_t n)
{
	if (fwrite(bytes, 1, n, writer->out) == n)
		return;
	torsh_private_drop(&writer->file);
	torsh_die("can't write %s: %s", writer->path, strerror(errno));
}

struct fold_writer *torsh_fold_write(const char *path)
{
	struct fold_writer *writer = torsh_need(calloc(1, sizeof(*writer)));
	struct fold_header header = {.magic = FOLD_MAGIC, .format = FOLD_FORMAT};
	int rc = torsh_private_create(&writer->file, path);

	if (rc < 0)
		torsh_die("can't write %s: %s", path, strerror(-rc));
	writer->path = path;
	writer->out = torsh_need(fdopen(writer->file.fd, "wb"));
	put(writer, &header, sizeof(header));
	return writer;
}

static void put_chunk(struct fold_writer *writer, struct fold_chunk *chunk, const uint8_t *raw,
		      size_t n_raw)
{
	size_t n = ZSTD_compressBound(n_raw);
	uint8_t *stored = torsh_need(malloc(n + 1));

	n = n_raw ? ZSTD_compress(stored, n, raw, n_raw, LEVEL) : 0;
	if (ZSTD_isError(n))
		torsh_die("can't write %s: zstd can't compress it", writer->path);
	chunk->magic = FOLD_CHUNK_MAGIC;
	chunk->raw_bytes = (uint32_t)n_raw;
	chunk->stored_bytes = (uint32_t)n;
	chunk->checksum = XXH64(stored, n, 0);
	chunk->header_checksum = XXH64(chunk, offsetof(struct fold_chunk, header_checksum), 0);
	put(writer, chunk, sizeof(*chunk));
	put(writer, stored, n);
	writer->n_chunks++;
	free(stored);
}

uint64_t torsh_fold_identity(const Torsh__FoldRank *rank)
{
	const char *host = rank->host ? rank->host : "";
	const uint64_t numbers[] = {rank->pid, rank->clock, rank->start_ns};

	return XXH64(numbers, sizeof(numbers), XXH64(host, strlen(host), 0));
}

void torsh_fold_write_rank(struct fold_writer *writer, const Torsh__FoldRank *rank)
{
	struct fold_chunk chunk = {.kind = FOLD_CHUNK_RANK,
				   .rank = rank->has_rank ? rank->rank + UINT64_C(1) : 0,
				   .identity = torsh_fold_identity(rank)};
	size_t n = torsh__fold_rank__get_packed_size(rank);
	uint8_t *raw = torsh_need(malloc(n + 1));

	if (n > FOLD_RANK_RAW_MAX)
		torsh_die("can't write %s: the row of a process would take %zu bytes", writer->path,
			  n);
	torsh__fold_rank__pack(rank, raw);
	put_chunk(writer, &chunk, raw, n);
	free(raw);
}

void torsh_fold_copy_rank(struct fold_writer *writer, const struct fold_bytes *file,
			  const struct fold_entry *entry)
{
	const uint8_t *bytes = file->bytes + entry->offset;
	struct fold_chunk chunk;

	memcpy(&chunk, bytes, sizeof(chunk));
	if (XXH64(bytes + sizeof(chunk), chunk.stored_bytes, 0) != chunk.checksum) {
		torsh_private_drop(&writer->file);
		torsh_die("the row of a process is damaged in one of the folds");
	}
	put(writer, bytes, sizeof(chunk) + chunk.stored_bytes);
	writer->n_chunks++;
}

void torsh_fold_write_end(struct fold_writer *writer, struct fold *fold)
{
	struct fold_chunk shared = {.kind = FOLD_CHUNK_SHARED}, end = {.kind = FOLD_CHUNK_END};
	uint8_t *raw;
	size_t n;
	int rc;

	torsh_fold_settle(fold);
	raw = torsh_fold_pack(fold, &n);
	if (n > FOLD_RAW_MAX) {
		torsh_private_drop(&writer->file);
		torsh_die("can't write %s: its call paths would take %zu MiB, and %u are the limit",
			  writer->path, n >> 20, FOLD_RAW_MAX >> 20);
	}
	put_chunk(writer, &shared, raw, n);
	free(raw);
	end.rank = writer->n_chunks;
	put_chunk(writer, &end, NULL, 0);
	if (fclose(writer->out) != 0) {
		rc = errno;
		torsh_private_drop(&writer->file);
		torsh_die("can't write %s: %s", writer->path, strerror(rc));
	}
	rc = torsh_private_keep(&writer->file);
	if (rc < 0)
		torsh_die("can't write %s: %s", writer->path, strerror(-rc));
	free(writer);
}
