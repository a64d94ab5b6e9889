/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * tools/writer/residency accounts for the resident memory of a process: who owns each byte of each
 * page. Read this file first.
 *
 * An account at one moment: its owners' bytes add up to rss_bytes, the sum of the Rss of all areas
 * in /proc/PID/smaps. account_take.h makes it, residency.h decides when.
 */
#ifndef TORSH_WRITER_RESIDENCY_ACCOUNT_H
#define TORSH_WRITER_RESIDENCY_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/base/containers/hash_map.h"
#include "tools/base/containers/number_index.h"

/* As in the recording: the numbers stay. */
enum owner_kind {
	OWNER_HEAP = 1, /* live blocks, by stack */
	OWNER_OVERHEAD, /* an allocator's headers, and what it rounds blocks up by */
	OWNER_RETAINED, /* an allocator's, and in no live block */
	OWNER_MAPPED, /* the program's own mappings, by stack */
	OWNER_STACK, /* of threads */
	OWNER_CODE, /* of the program and libraries */
	OWNER_DATA, /* likewise */
	OWNER_FILE, /* mapped files */
	OWNER_SHARED, /* memory that is shared between processes */
	/* of a fork: pages that it inherited and no longer shares, by what is in them */
	OWNER_COW,
	OWNER_INHERITED, /* of a fork: pages that it still shares */
	OWNER_AGENT, /* the agent's own */
	OWNER_DEVICE, /* mapped by a device's driver */
	OWNER_KERNEL, /* "[vdso]" and the like */
	OWNER_UNKNOWN, /* anonymous memory that nobody was seen to map */
	OWNER_CHANGED, /* was released while the account was taken */
	N_OWNER_KINDS
};

struct owner {
	uint32_t kind; /* enum owner_kind */
	uint32_t stack; /* 0: none */
	uint32_t name; /* number + 1 in the account's names; 0: none */
	uint32_t reserved;
};

struct owner_bytes {
	struct owner owner;
	uint64_t bytes;
	uint64_t pss_bytes; /* its proportional share, for what is not in pages of this process */
};

#define N_BLOCK_SIZES 65u /* 0, then powers of two; the last number + 1 is "no block" */

/* What is free in an allocator's memory, by the size of the live block beside it. */
struct fragment {
	uint32_t name; /* of the arena: number + 1 */
	uint32_t size_class; /* floor(log2(size)) + 1; N_BLOCK_SIZES: there is no live block */
	uint64_t live_bytes; /* resident, of live blocks of that size */
	uint64_t free_bytes;
	uint64_t whole_bytes; /* of free_bytes: in pages without a live block */
};

/* The live blocks of a stack. */
struct stack_bytes {
	uint32_t stack;
	uint64_t bytes, pss_bytes;
};

#define BROKEN_LINES_MAX 256u

/* A line at which inherited pages were broken, as sampled. */
struct broken_line {
	uint32_t stack; /* 0: not known */
	uint64_t samples;
	uint64_t pages; /* that these stand for */
};

/* Of a fork: where its first thread was when it broke pages. */
struct account_breaks {
	struct broken_line *lines;
	uint32_t n_lines;
	size_t capacity;
	uint64_t samples, pages; /* of all lines */
	uint64_t lost; /* samples for which there was no room */
};

#define RECENT_OWNERS 1024u
#define RECENT_FRAGMENTS 128u

struct account {
	uint64_t at_ns; /* session time */
	uint64_t rss_bytes, pss_bytes, swap_bytes, huge_bytes;
	uint64_t status_bytes; /* VmRSS right before */
	uint64_t page_table_bytes, hugetlb_bytes; /* not in rss_bytes */
	uint64_t cpu_ns; /* that the account took */
	bool is_at_end; /* while the process waited at its exit */
	bool is_held; /* its threads were stopped, and all its events were folded */
	/* the whole session's processes, at about that moment; 0: only this one */
	uint64_t tree_rss_bytes, tree_pss_bytes;
	uint32_t n_tree;
	const char *undivided; /* why live blocks are not divided by stack; NULL: they are */

	bool is_fork;
	struct account_breaks breaks; /* until then */
	int breaks_error; /* why they were not sampled, an errno; 0: they were */

	struct owner_bytes *owners;
	uint32_t n_owners;
	size_t owner_capacity;
	struct hash_map owner_of; /* by struct owner: number */
	/* until the end: numbers + 1 of owners that were added to, and blocks of stacks */
	uint32_t *recent;
	bool has_stacks;
	struct stack_bytes *of_stacks; /* each stack once, in any order, from 1 on */
	uint32_t n_of_stacks; /* with item 0 */
	size_t of_stacks_capacity;
	struct number_index stack_index;
	char **names;
	uint32_t n_names;
	size_t name_capacity;
	struct hash_map name_of;
	struct fragment *fragments;
	uint32_t n_fragments;
	size_t fragment_capacity;
	struct hash_map fragment_of; /* by name and class */
	uint32_t recent_fragments[RECENT_FRAGMENTS]; /* likewise */
};

/* Optional: live blocks are added faster then. */
void torsh_account_begin(struct account *account);

/* Forget the live blocks of all stacks, between begin and end. */
void torsh_account_clear_stacks(struct account *account);

/* Free what the account holds; it is empty afterwards. */
void torsh_account_free(struct account *account);

/* Returns the number + 1 of a name, which is copied; 0 for NULL. */
uint32_t torsh_account_name(struct account *account, const char *name);

/* Add bytes to an owner. */
void torsh_account_add(struct account *account, struct owner owner, uint64_t bytes,
		       uint64_t pss_bytes);

/* Returns the row of an arena and a size, which is added if it is new; valid until the next one. */
struct fragment *torsh_account_fragment(struct account *account, uint32_t name,
					uint32_t size_class);

/*
 * Put owners and fragments in order, the largest owners first, and fold those beyond the n_most of
 * each kind into one.
 */
void torsh_account_end(struct account *account, uint32_t n_most);

#endif
