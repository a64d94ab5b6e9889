/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Folds in files. A file is read in order; the rows of its processes are read one by one, or
 * copied without being unpacked. Lengths and checksums are verified: a bad file gives a sentence.
 */
#ifndef TORSH_RANKS_FOLD_FOLD_FILE_H
#define TORSH_RANKS_FOLD_FOLD_FILE_H

#include "fold.pb-c.h"
#include "tools/ranks/fold/fold.h"
#include "tools/ranks/fold/fold_format.h"

/* Where a file has the row of a process. */
struct fold_entry {
	uint64_t rank; /* and 1; 0: none */
	uint64_t identity;
	uint64_t offset; /* of its chunk */
	uint32_t stored_bytes;
	uint32_t input; /* number of the file, as the caller set it */
};

/* The rows of files, by process. */
struct fold_entries {
	struct fold_entry *items;
	size_t n, n_room;
};

/*
 * Read a fold in memory: add its shared part to *fold (NULL: it is only checked) and its rows to
 * entries. Returns 0, or -errno with a sentence without the file's name in error.
 */
int torsh_fold_read_bytes(struct fold *fold, struct fold_entries *entries, uint32_t input,
			  const uint8_t *bytes, size_t n_bytes, char *error, size_t n_error);

/* The bytes of a whole file, mapped. */
struct fold_bytes {
	const uint8_t *bytes;
	size_t n;
};

/* Map a file. Returns 0, or -errno with a sentence that begins with its name in error. */
int torsh_fold_map(struct fold_bytes *file, const char *path, char *error, size_t n_error);

/* Unmap it. */
void torsh_fold_unmap(struct fold_bytes *file);

/* Returns whether the file begins as a fold does; false: it doesn't, or it can't be read. */
bool torsh_fold_is_fold(const char *path);

/* Unpack the row of an entry of a file; NULL: it is damaged. Freed as torsh_fold_unpack_rank's. */
Torsh__FoldRank *torsh_fold_entry_rank(const struct fold_bytes *file,
				       const struct fold_entry *entry);

/*
 * Sort entries by process. Returns the index of the first one that is the same process as the one
 * before it, or SIZE_MAX: there is none.
 */
size_t torsh_fold_sort_entries(struct fold_entries *entries);

struct fold_writer;

/* Begin a file; it appears at path when it is complete. Ends the program if it can't. */
struct fold_writer *torsh_fold_write(const char *path);

/* Append the row of a process, in the order of torsh_fold_sort_entries. */
void torsh_fold_write_rank(struct fold_writer *writer, const Torsh__FoldRank *rank);

/* Append the row of an entry of a file as it is. */
void torsh_fold_copy_rank(struct fold_writer *writer, const struct fold_bytes *file,
			  const struct fold_entry *entry);

/* Append the shared part, which is settled by this, and end the file. */
void torsh_fold_write_end(struct fold_writer *writer, struct fold *fold);

/* Returns what identifies a process in files. */
uint64_t torsh_fold_identity(const Torsh__FoldRank *rank);

#endif
