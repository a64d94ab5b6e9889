/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Who owned the resident memory of a process at its peak or at its end, with names. The bytes of
 * all owners add up to the account's rss_bytes.
 */
#ifndef TORSH_MEMORY_RSS_RESIDENT_H
#define TORSH_MEMORY_RSS_RESIDENT_H

#include "tools/recording/recording.h"
#include "tools/symbols/symbols.h"

enum resident_moment { RESIDENT_AT_PEAK, RESIDENT_AT_END };

/* In place of RESIDENT_MAPPED, for arenas of CPython. */
#define RESIDENT_CPYTHON N_RESIDENT_KINDS
#define N_RESIDENT_WHAT (N_RESIDENT_KINDS + 1)

struct resident_owner {
	uint32_t kind; /* enum resident_kind, or RESIDENT_CPYTHON */
	char *name; /* NULL: what is left of the kind */
	uint32_t stack; /* of most of its bytes; 0: none */
	size_t n; /* owners of the recording that it stands for */
	uint64_t bytes, pss_bytes;
};

struct resident {
	const struct recorded_process *process;
	const struct recorded_account *account; /* NULL: there is none */
	struct resident_owner *owners; /* by kind, those with most first; then by bytes */
	size_t n_owners;
	uint64_t kind_bytes[N_RESIDENT_WHAT];
};

/* Returns the account of that moment, or NULL. */
const struct recorded_account *torsh_resident_account(const struct recorded_process *process,
						      enum resident_moment moment);

/* Of each kind: what is beyond is one owner. */
struct resident_limits {
	size_t n_named; /* stacks that are looked up, largest first; several may be a line */
	size_t n_most; /* owners that are kept then */
};

/* Make the list of owners at that moment. The process must outlive it. */
void torsh_resident_make(struct resident *resident, const struct recorded_process *process,
			 enum resident_moment moment, struct symbols *symbols,
			 struct resident_limits limits);

/* Free the list. */
void torsh_resident_free(struct resident *resident);

/* Returns the name of a kind: "heap". */
const char *torsh_resident_kind(uint32_t kind);

/* Returns its title in reports: "live heap, by line". */
const char *torsh_resident_text(uint32_t kind);

/* Returns the process with the largest account of that moment; NULL: none has one. */
const struct recorded_process *torsh_resident_largest(struct recorded_process *const *processes,
						      size_t n, enum resident_moment moment);

/* Returns the account of these processes at which all of them shared most memory; NULL: none. */
const struct recorded_account *torsh_resident_tree(struct recorded_process *const *processes,
						   size_t n);

#endif
