/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ranks/fold/fold_merge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/base/die.h"

#define ERROR_BYTES 512

static struct fold_bytes map_file(const char *path)
{
	struct fold_bytes file;
	char error[ERROR_BYTES];

	if (torsh_fold_map(&file, path, error, sizeof(error)))
		torsh_die("%s", error);
	return file;
}

static void read_file(struct fold *fold, struct fold_entries *entries, const char *path,
		      uint32_t input)
{
	struct fold_bytes file = map_file(path);
	char error[ERROR_BYTES];

	if (torsh_fold_read_bytes(fold, entries, input, file.bytes, file.n, error, sizeof(error)))
		torsh_die("%s %s", path, error);
	torsh_fold_unmap(&file);
}

_Noreturn static void refuse_twin(const struct fold_entry *twin, const char *const *paths)
{
	char rank[64] = "the process without a rank";

	if (twin->rank)
		snprintf(rank, sizeof(rank), "rank %" PRIu64, twin->rank - 1);
	if (twin[-1].input == twin->input)
		torsh_die("%s has %s twice", paths[twin->input], rank);
	torsh_die("%s and %s both have %s: of a process only one fold can be merged",
		  paths[twin[-1].input], paths[twin->input], rank);
}

/* Rows of one file mostly follow each other: one file is open at a time. */
static void copy_ranks(struct fold_writer *writer, const struct fold_entries *entries,
		       const char *const *paths)
{
	struct fold_bytes file = {0};
	uint32_t input = UINT32_MAX;

	for (size_t i = 0; i < entries->n; i++) {
		const struct fold_entry *entry = &entries->items[i];

		if (entry->input != input) {
			torsh_fold_unmap(&file);
			file = map_file(paths[entry->input]);
			input = entry->input;
		}
		if (entry->offset + sizeof(struct fold_chunk) + entry->stored_bytes > file.n)
			torsh_die("%s became shorter while it was read", paths[input]);
		torsh_fold_copy_rank(writer, &file, entry);
	}
	torsh_fold_unmap(&file);
}

void torsh_fold_merge_files(const char *const *paths, size_t n, const char *output)
{
	struct fold *fold = torsh_fold_create();
	struct fold_entries entries = {0};
	struct fold_writer *writer;
	size_t twin;

	for (size_t i = 0; i < n; i++)
		read_file(fold, &entries, paths[i], (uint32_t)i);
	twin = torsh_fold_sort_entries(&entries);
	if (twin != SIZE_MAX)
		refuse_twin(&entries.items[twin], paths);
	writer = torsh_fold_write(output);
	copy_ranks(writer, &entries, paths);
	torsh_fold_write_end(writer, fold);
	free(entries.items);
	torsh_fold_destroy(fold);
}
