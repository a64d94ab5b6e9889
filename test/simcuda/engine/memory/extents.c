/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* First fit over an ordered array. */
#include "test/simcuda/engine/memory/extents.h"

#include <stdlib.h>
#include <string.h>

static void insert_at(struct sim_extents *extents, size_t i, struct sim_extent part)
{
	if (extents->n == extents->capacity) {
		extents->capacity = extents->capacity ? 2 * extents->capacity : 64;
		extents->parts =
			realloc(extents->parts, extents->capacity * sizeof(*extents->parts));
	}
	memmove(&extents->parts[i + 1], &extents->parts[i], (extents->n - i) * sizeof(part));
	extents->parts[i] = part;
	extents->n++;
}

static void remove_at(struct sim_extents *extents, size_t i)
{
	extents->n--;
	memmove(&extents->parts[i], &extents->parts[i + 1],
		(extents->n - i) * sizeof(*extents->parts));
}

/* The first part that begins behind offset. */
static size_t find_behind(const struct sim_extents *extents, uint64_t offset)
{
	size_t low = 0, high = extents->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (extents->parts[middle].offset <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void sim_extents_give(struct sim_extents *extents, uint64_t offset, uint64_t bytes)
{
	size_t i = find_behind(extents, offset);
	struct sim_extent *before = i ? &extents->parts[i - 1] : NULL;
	struct sim_extent *behind = i < extents->n ? &extents->parts[i] : NULL;

	extents->free_bytes += bytes;
	if (before && before->offset + before->bytes == offset) {
		before->bytes += bytes;
		if (behind && before->offset + before->bytes == behind->offset) {
			before->bytes += behind->bytes;
			remove_at(extents, i);
		}
	} else if (behind && offset + bytes == behind->offset) {
		behind->offset = offset;
		behind->bytes += bytes;
	} else {
		insert_at(extents, i, (struct sim_extent){offset, bytes});
	}
}

/* Cut [offset, offset + bytes) out of part i. */
static void cut(struct sim_extents *extents, size_t i, uint64_t offset, uint64_t bytes)
{
	struct sim_extent part = extents->parts[i];
	uint64_t end = part.offset + part.bytes;

	remove_at(extents, i);
	if (end > offset + bytes)
		insert_at(extents, i, (struct sim_extent){offset + bytes, end - offset - bytes});
	if (offset > part.offset)
		insert_at(extents, i, (struct sim_extent){part.offset, offset - part.offset});
	extents->free_bytes -= bytes;
}

bool sim_extents_take(struct sim_extents *extents, uint64_t bytes, uint64_t alignment,
		      uint64_t *offset)
{
	for (size_t i = 0; i < extents->n; i++) {
		uint64_t begin = (extents->parts[i].offset + alignment - 1) & -alignment;
		uint64_t lost = begin - extents->parts[i].offset;

		if (extents->parts[i].bytes < lost || extents->parts[i].bytes - lost < bytes)
			continue;
		cut(extents, i, begin, bytes);
		*offset = begin;
		return true;
	}
	return false;
}

void sim_extents_clear(struct sim_extents *extents)
{
	free(extents->parts);
	memset(extents, 0, sizeof(*extents));
}
