/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Who owned the resident memory of a process at one moment: a part of recording.h. */
#ifndef TORSH_RECORDING_MEMORY_RECORDED_ACCOUNT_H
#define TORSH_RECORDING_MEMORY_RECORDED_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As in Residency. */
enum resident_kind {
	RESIDENT_HEAP = 1,
	RESIDENT_OVERHEAD,
	RESIDENT_RETAINED,
	RESIDENT_MAPPED,
	RESIDENT_STACK,
	RESIDENT_CODE,
	RESIDENT_DATA,
	RESIDENT_FILE,
	RESIDENT_SHARED,
	RESIDENT_COW,
	RESIDENT_INHERITED,
	RESIDENT_AGENT,
	RESIDENT_DEVICE,
	RESIDENT_KERNEL,
	RESIDENT_UNKNOWN,
	RESIDENT_CHANGED,
	N_RESIDENT_KINDS
};

struct recorded_owner {
	enum resident_kind kind;
	uint32_t stack; /* 0: none */
	const char *name; /* of the account's; NULL: none */
	uint64_t bytes, pss_bytes;
};

#define RESIDENT_NO_BLOCK 65u /* in place of a size class */

struct recorded_fragment {
	const char *arena;
	uint32_t size_class;
	uint64_t live_bytes, free_bytes, whole_bytes;
};

/* A line at which a fork broke inherited pages. */
struct recorded_break {
	uint32_t stack; /* 0: not known */
	uint64_t samples, pages;
};

/* Who owned the resident memory at one moment: see Residency. */
struct recorded_account {
	bool is_there;
	bool is_at_end, is_held;
	bool is_of_fork, inherited_is_known;
	uint64_t at_ns, rss_bytes, pss_bytes, swap_bytes, huge_bytes;
	uint64_t status_bytes, page_table_bytes, hugetlb_bytes, cpu_ns;
	uint64_t tree_rss_bytes, tree_pss_bytes;
	uint32_t n_tree;
	char *undivided; /* NULL: live blocks and free memory are divided */
	char **names;
	size_t n_names;
	struct recorded_owner *owners;
	size_t n_owners;
	struct recorded_fragment *fragments;
	size_t n_fragments;
	bool is_sampled; /* a fork, whose faults were sampled */
	struct recorded_break *breaks;
	size_t n_breaks;
	uint64_t samples_lost;
	char *unsampled; /* why not; NULL: they were, it is no fork, or an older version recorded */
};

enum { ACCOUNT_AT_LAST, ACCOUNT_AT_FORMER, N_RECORDED_ACCOUNTS };

#endif
