/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/store/recording_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

#include "tools/base/containers/array.h"
#include "tools/store/delta.h"

#define LEVEL 3
#define SPARE_LEAST (256u << 10) /* reserve for the last chunks, in bytes */
#define SPARE_MOST (16u << 20)
#define N_PRIORITIES 3u

struct recording_file {
	int fd;
	uint32_t n_chunks;
	uint64_t n_bytes;
	uint64_t n_reserved; /* allocated on disk after n_bytes */
	struct recording_limits limits;
	ZSTD_CCtx *zstd;
	uint8_t *raw, *stored;
	size_t raw_capacity, stored_capacity;
	struct free_extents extents;
	uint64_t tables_bytes; /* of all chunks except events: estimates the last ones */
	char stopped[N_PRIORITIES][128];
	char missed[128]; /* why one of the last chunks is missing */
};

static void stop(struct recording_file *file, enum recording_priority priority, const char *why)
{
	for (uint32_t i = 0; i <= (uint32_t)priority; i++) {
		if (!file->stopped[i][0])
			snprintf(file->stopped[i], sizeof(file->stopped[i]), "%s", why);
	}
}

static void stop_at_error(struct recording_file *file, enum recording_priority priority, int error)
{
	char why[128];

	snprintf(why, sizeof(why), "can't write the recording: %s", strerror(error));
	stop(file, priority, why);
}

/* Returns 0 or -errno. */
static int write_at(const struct recording_file *file, const void *bytes, size_t n_bytes,
		    uint64_t at)
{
	size_t done = 0;

	while (done < n_bytes) {
		ssize_t n = pwrite(file->fd, (const char *)bytes + done, n_bytes - done,
				   (off_t)(at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -ENOSPC;
		done += (size_t)n;
	}
	return 0;
}

/* Write all bytes or none: after an error the file is truncated again. Returns 0 or -errno. */
static int write_all(struct recording_file *file, const void *bytes, size_t n_bytes)
{
	int result = write_at(file, bytes, n_bytes, file->n_bytes);

	if (result)
		return ftruncate(file->fd, (off_t)file->n_bytes) ? -errno : result;
	file->n_bytes += n_bytes;
	file->n_reserved -= file->n_reserved < n_bytes ? file->n_reserved : n_bytes;
	return 0;
}

struct recording_file *torsh_recording_create(int fd, const struct recording_limits *limits,
					      uint64_t start_realtime_ns)
{
	struct recording_file *file = calloc(1, sizeof(*file));
	struct recording_header header = {
		.magic = RECORDING_MAGIC,
		.format = RECORDING_FORMAT,
		.header_bytes = sizeof(header),
		.start_realtime_ns = start_realtime_ns,
	};
	int result;

	if (!file)
		return NULL;
	file->fd = fd;
	file->limits = *limits;
	file->zstd = ZSTD_createCCtx();
	if (!file->zstd) {
		free(file);
		return NULL;
	}
	ZSTD_CCtx_setParameter(file->zstd, ZSTD_c_compressionLevel, LEVEL);
	header.checksum = XXH64(&header, offsetof(struct recording_header, checksum), 0);
	result = write_all(file, &header, sizeof(header));
	if (result)
		stop_at_error(file, RECORDING_LAST, -result);
	return file;
}

void torsh_recording_finish(struct recording_file *file)
{
	if (file->n_reserved && ftruncate(file->fd, (off_t)file->n_bytes))
		fprintf(stderr, "torsh: can't give back the recording's spare room: %s\n",
			strerror(errno));
	ZSTD_freeCCtx(file->zstd);
	torsh_free_extents_destroy(&file->extents);
	free(file->raw);
	free(file->stored);
	free(file);
}

uint64_t torsh_recording_written(const struct recording_file *file)
{
	return file->n_bytes;
}

const char *torsh_recording_missed(const struct recording_file *file)
{
	return file->missed[0] ? file->missed : NULL;
}

const char *torsh_recording_stopped(const struct recording_file *file,
				    enum recording_priority priority)
{
	return file->stopped[priority][0] ? file->stopped[priority] : NULL;
}

static int reserve_bytes(uint8_t **bytes, size_t *capacity, size_t n)
{
	uint8_t *larger = torsh_array_try_grow(*bytes, n, capacity, 1);

	if (!larger)
		return -ENOMEM;
	*bytes = larger;
	return 0;
}

static uint64_t spare_bytes(const struct recording_file *file)
{
	uint64_t spare = file->tables_bytes;

	if (spare < SPARE_LEAST)
		spare = SPARE_LEAST;
	if (spare > SPARE_MOST)
		spare = SPARE_MOST;
	if (file->limits.max_bytes && spare > file->limits.max_bytes / 4)
		spare = file->limits.max_bytes / 4;
	return spare;
}

static int check_size(struct recording_file *file, enum recording_priority priority,
		      uint64_t n_bytes)
{
	uint64_t kept = (RECORDING_LAST - priority) * spare_bytes(file);
	char why[128];

	if (!file->limits.max_bytes || file->n_bytes + n_bytes + kept <= file->limits.max_bytes)
		return 0;
	snprintf(why, sizeof(why), "the recording reached its greatest size of %llu bytes",
		 (unsigned long long)file->limits.max_bytes);
	/* After a refusal, a smaller one of the last chunks may still fit. */
	if (priority != RECORDING_LAST)
		stop(file, priority, why);
	return -ENOSPC;
}

/* The last chunks may use the reserve: it is meant for other programs, and they are small. */
static int check_disk(struct recording_file *file, enum recording_priority priority,
		      uint64_t n_bytes)
{
	struct statvfs disk;
	char why[128];

	if (priority == RECORDING_LAST || !file->limits.reserve_bytes || fstatvfs(file->fd, &disk))
		return 0;
	if ((uint64_t)disk.f_bavail * disk.f_frsize >= file->limits.reserve_bytes + n_bytes)
		return 0;
	snprintf(why, sizeof(why), "less than %llu MiB are free on the disk",
		 (unsigned long long)(file->limits.reserve_bytes >> 20));
	stop(file, priority, why);
	return -ENOSPC;
}

/*
 * If the file system supports it, allocate blocks for this chunk and for the last ones before
 * writing it.
 */
static int reserve_disk(struct recording_file *file, enum recording_priority priority,
			uint64_t n_bytes)
{
	uint64_t wanted = n_bytes + spare_bytes(file);

	if (priority == RECORDING_LAST || wanted <= file->n_reserved)
		return 0;
	if (!fallocate(file->fd, FALLOC_FL_KEEP_SIZE, (off_t)file->n_bytes, (off_t)wanted)) {
		file->n_reserved = wanted;
		return 0;
	}
	if (errno != ENOSPC && errno != EFBIG && errno != EDQUOT)
		return 0;
	stop_at_error(file, priority, errno);
	return -ENOSPC;
}

static uint16_t kinds_of(const Torsh__Chunk *chunk)
{
	uint32_t kinds = 0;

	if (chunk->session || chunk->n_process || chunk->n_modules || chunk->n_functions ||
	    chunk->n_addresses || chunk->n_symbols || chunk->n_stacks || chunk->n_unfollowed ||
	    chunk->checkpoint || chunk->n_clock_peer || chunk->n_clock_exchanges)
		kinds |= CHUNK_TABLES;
	/* The last rows of a process don't have it again, as they have what CHUNK_TOTALS is. */
	if (chunk->n_residency || chunk->n_census || chunk->n_device_use ||
	    chunk->n_library_calls || chunk->n_tasks || chunk->n_task_names ||
	    chunk->n_memory_traffic)
		kinds |= CHUNK_TABLES;
	if (chunk->n_stack_totals || chunk->n_heap || chunk->n_live || chunk->n_mappings ||
	    chunk->n_threads || chunk->n_series || chunk->n_joint || chunk->n_growth ||
	    chunk->n_moments || chunk->n_verdicts || chunk->n_cpu_time || chunk->n_cpu_supply)
		kinds |= CHUNK_TOTALS;
	if (chunk->n_events)
		kinds |= CHUNK_EVENTS;
	if (chunk->end)
		kinds |= CHUNK_END;
	if (chunk->n_timeline)
		kinds |= CHUNK_TIMELINE;
	return (uint16_t)kinds;
}

/*
 * Serialise the chunk: file->stored becomes header and payload; `kinds` is added to the header.
 * Returns its length or -errno.
 */
static int64_t pack(struct recording_file *file, const Torsh__Chunk *chunk, uint32_t kinds)
{
	struct chunk_header header = {
		.magic = CHUNK_MAGIC,
		.coding = CHUNK_ZSTD,
		.kinds = (uint16_t)(kinds | kinds_of(chunk)),
	};
	size_t n_raw = torsh__chunk__get_packed_size(chunk), bound = ZSTD_compressBound(n_raw),
	       n_stored;
	uint8_t *payload;

	if (n_raw > CHUNK_RAW_MAX)
		return -E2BIG;
	if (reserve_bytes(&file->raw, &file->raw_capacity, n_raw) ||
	    reserve_bytes(&file->stored, &file->stored_capacity, sizeof(header) + bound))
		return -ENOMEM;
	payload = file->stored + sizeof(header);
	torsh__chunk__pack(chunk, file->raw);
	n_stored = ZSTD_compress2(file->zstd, payload, bound, file->raw, n_raw);
	if (ZSTD_isError(n_stored) || n_stored >= n_raw) {
		header.coding = CHUNK_PLAIN;
		n_stored = n_raw;
		memcpy(payload, file->raw, n_raw);
	}
	header.number = file->n_chunks;
	header.raw_bytes = (uint32_t)n_raw;
	header.stored_bytes = (uint32_t)n_stored;
	header.checksum = XXH64(payload, n_stored, 0);
	header.header_checksum = XXH64(&header, offsetof(struct chunk_header, header_checksum), 0);
	memcpy(file->stored, &header, sizeof(header));
	return (int64_t)(sizeof(header) + n_stored);
}

/* The chunk's columns are delta-encoded during the call. Returns as pack. */
static int64_t pack_deltas(struct recording_file *file, Torsh__Chunk *chunk, uint32_t kinds)
{
	int64_t n_bytes;

	torsh_delta_encode(chunk);
	n_bytes = pack(file, chunk, kinds);
	torsh_delta_decode(chunk);
	return n_bytes;
}

/* Append the packed chunk to the file. */
static int append_packed(struct recording_file *file, int64_t n_bytes,
			 enum recording_priority priority)
{
	int result;

	result = check_size(file, priority, (uint64_t)n_bytes);
	if (!result)
		result = check_disk(file, priority, (uint64_t)n_bytes);
	if (!result)
		result = reserve_disk(file, priority, (uint64_t)n_bytes);
	if (result)
		return result;
	result = write_all(file, file->stored, (size_t)n_bytes);
	if (result) {
		/*
		 * A smaller one of the last chunks may still fit. Chunks that are written again
		 * and again must not retry for ever.
		 */
		if (priority != RECORDING_LAST || result != -ENOSPC)
			stop_at_error(file, priority, -result);
		return result;
	}
	file->n_chunks++;
	if (priority != RECORDING_EVENTS)
		file->tables_bytes += (uint64_t)n_bytes;
	return 0;
}

static int append(struct recording_file *file, Torsh__Chunk *chunk,
		  enum recording_priority priority)
{
	int64_t n_bytes;

	if (file->stopped[priority][0])
		return -ENOSPC;
	n_bytes = pack_deltas(file, chunk, 0);
	return n_bytes < 0 ? (int)n_bytes : append_packed(file, n_bytes, priority);
}

/* Called by torsh_free_extents_settle too. */
static int write_free(void *context, struct extent extent)
{
	struct recording_file *file = context;
	struct chunk_header header = {
		.magic = CHUNK_MAGIC,
		.kinds = CHUNK_FREE,
		.stored_bytes = (uint32_t)(extent.n_bytes - sizeof(header)),
	};

	header.header_checksum = XXH64(&header, offsetof(struct chunk_header, header_checksum), 0);
	return write_at(file, &header, sizeof(header), extent.offset);
}

/*
 * Write the packed chunk into a free place. The remainder is marked first: until then the whole
 * place counts as free.
 */
static int overwrite(struct recording_file *file, enum recording_priority priority,
		     struct extent whole, uint64_t n_bytes)
{
	struct extent rest = {.offset = whole.offset + n_bytes, .n_bytes = whole.n_bytes - n_bytes};
	int result = rest.n_bytes ? write_free(file, rest) : 0;

	if (!result)
		result = write_at(file, file->stored, n_bytes, whole.offset);
	if (result)
		stop_at_error(file, priority, -result);
	else
		file->n_chunks++;
	return result;
}

static int note_missed(struct recording_file *file, enum recording_priority priority, int result)
{
	if (result && priority == RECORDING_LAST && !file->missed[0])
		snprintf(file->missed, sizeof(file->missed), "%s",
			 file->stopped[priority][0] ? file->stopped[priority]
			 : result == -E2BIG	    ? "a table is larger than a chunk may be"
						    : strerror(-result));
	return result;
}

int torsh_recording_append(struct recording_file *file, Torsh__Chunk *chunk,
			   enum recording_priority priority)
{
	return note_missed(file, priority, append(file, chunk, priority));
}

int torsh_recording_put(struct recording_file *file, Torsh__Chunk *chunk,
			enum recording_priority priority, struct extent *extent)
{
	struct extent whole = {0};
	int64_t n_bytes;
	int result;

	*extent = (struct extent){0};
	if (file->stopped[priority][0])
		return note_missed(file, priority, -ENOSPC);
	n_bytes = pack_deltas(file, chunk,
			      priority == RECORDING_CHECKPOINT ? CHUNK_LATER | CHUNK_CHECKPOINT
							       : CHUNK_LATER);
	if (n_bytes < 0)
		return note_missed(file, priority, (int)n_bytes);
	if (priority != RECORDING_LAST)
		whole = torsh_free_extents_take(&file->extents, (uint64_t)n_bytes,
						sizeof(struct chunk_header));
	if (whole.n_bytes)
		result = overwrite(file, priority, whole, (uint64_t)n_bytes);
	else
		result = append_packed(file, n_bytes, priority);
	if (!result)
		*extent = (struct extent){whole.n_bytes ? whole.offset
							: file->n_bytes - (uint64_t)n_bytes,
					  (uint64_t)n_bytes};
	return note_missed(file, priority, result);
}

void torsh_recording_free_extent(struct recording_file *file, struct extent extent)
{
	torsh_free_extents_add(&file->extents, extent);
}

void torsh_recording_drop_extent(struct recording_file *file, struct extent extent)
{
	/* If that fails the chunk is found until its room is used again. */
	write_free(file, extent);
	torsh_free_extents_add(&file->extents, extent);
}

void torsh_recording_settle(struct recording_file *file)
{
	torsh_free_extents_settle(&file->extents, write_free, file);
}
