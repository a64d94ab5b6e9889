/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The leaks of processes: blocks that were not freed when the process ended, without the
 * bookkeeping of libraries and what a rule suppresses. Both are counted separately.
 *
 * Memory that is kept on purpose is allocated once; memory that is allocated again and again is a
 * leak, whoever keeps it. So at most LEAKS_KEPT_BYTES are left out per caller of a library's
 * bookkeeping, per process of what a rule of the kind SUPPRESS_KEPT matches, and per innermost
 * import of a stack of what rules such as SUPPRESS_IMPORT match: if it is more, all of it is a
 * leak.
 *
 * Blocks that are alive when a process becomes another program are no leak: exec releases all
 * memory, and a program has no reason to free anything before it.
 *
 * Likewise what Python still held when a forked process ended by _exit() (python_holds.h).
 *
 * What the import of an installed package leaves for ever is counted apart, by package, and so is
 * what a package keeps since its first use.
 *
 * On a device likewise: what was not freed when the process ended. Memory that nothing freed
 * before its context was destroyed is a leak, too, and is also counted separately. Memory that a
 * framework's allocator reserved and did not allocate is bookkeeping.
 *
 * In a window of time: blocks that were allocated in it (window_parts.h). Blocks without recorded
 * times are undecided, and counted separately with all that may be in the window.
 */
#ifndef TORSH_MEMORY_LEAKS_LEAKS_H
#define TORSH_MEMORY_LEAKS_LEAKS_H

#include "tools/device/memory/device_memory.h"
#include "tools/memory/allocation_sites.h"
#include "tools/memory/leaks/block_classes.h"
#include "tools/memory/leaks/kept_imports.h"
#include "tools/memory/leaks/rules/suppress.h"
#include "tools/timeline/window.h"

struct leaks_kept {
	const char *what; /* named as by torsh_bookkeeping_of */
	uint64_t blocks, bytes;
};

/* The leaks of one process; in the order of the processes given. */
struct leaks_process {
	uint64_t blocks, bytes; /* of its leaks, and of those of a helper */
	struct counted_sites kept; /* of these: it could still reach them, they are not lost */
	bool is_helper; /* it leaked, and is a helper: helper_processes.h */
	uint64_t exec_blocks, exec_bytes; /* all blocks alive at an exec */
};

/* The leaks of helper processes, which are not among the found ones: helper_processes.h. */
struct helper_leaks {
	size_t n_processes;
	uint64_t blocks, bytes;
};

struct leaks {
	/* NULL: find leaks of the heap; else those of this device */
	const struct memory_of_devices *devices;
	const char *device;
	struct device_sum with_context; /* of the leaks: blocks that ended with their context */
	/* find what was alive at an exec instead of leaks */
	bool at_exec;
	const struct windows *windows; /* parallel to the processes given; NULL: the whole run */
	struct allocation_sites found;
	struct allocation_sites undecided; /* an upper bound of their part in the window */
	uint64_t undecided_blocks, undecided_bytes;
	struct class_sums classes; /* of the found ones; not on a device */
	uint64_t blocks, bytes, usable_bytes;
	bool usable_is_known; /* of all blocks */
	/*
	 * What was still in use when the exit of a process began, and was freed since, without what
	 * imports and libraries keep: no leak, but memory that was held to the end. The sums are
	 * without what python_holds.h finds, which nothing freed.
	 */
	struct allocation_sites held;
	uint64_t held_blocks, held_bytes;
	bool with_helpers; /* input: find the leaks of helper processes, too */
	struct helper_leaks helpers;
	struct leaks_process *processes;
	size_t n_processes;
	struct leaks_kept *bookkeeping;
	size_t n_bookkeeping, bookkeeping_room;
	uint64_t bookkeeping_blocks, bookkeeping_bytes;
	uint64_t in_use_bytes; /* of these, what forked processes of Python had in use */
	uint64_t suppressed_blocks, suppressed_bytes; /* by which rules: in suppress */
	/* set before: what packages keep since their import or first use is a leak */
	bool without_imports;
	struct kept_imports imports; /* sorted */
	struct kept_imports first_uses; /* sorted; no rule took any */
	/*
	 * when their process ended, or at an exec: found, of helpers, bookkeeping, suppressed, kept
	 * by packages
	 */
	uint64_t alive_blocks, alive_bytes;
	uint64_t exec_blocks, exec_bytes; /* of all processes */
	uint64_t inherited_blocks, inherited_bytes; /* from before a fork: not leaks */
};

/*
 * Find the leaks. suppress may be NULL. leaks->devices, ->device, ->at_exec, ->windows,
 * ->found.depth and .view may be set before; the results are neither sorted nor named.
 */
void torsh_leaks_find(struct leaks *leaks, struct recorded_process *const *processes,
		      size_t n_processes, struct symbols *symbols, struct suppress *suppress);

/* Returns from how many bytes on a held site is reported as large. */
uint64_t torsh_leaks_held_min(struct recorded_process *const *processes, size_t n_processes);

/* Bytes that were alive and did not leak; with the leaks they add up to alive_bytes. */
struct leaks_parts {
	uint64_t imports; /* kept by imports of packages, whatever rule took it */
	uint64_t first_uses; /* kept by packages since their first use */
	uint64_t interpreter; /* other blocks that built-in rules took */
	uint64_t libraries; /* bookkeeping */
	uint64_t in_use; /* held by Python where a forked process ended by _exit() */
	uint64_t rules; /* that the user's rules matched */
	uint64_t helpers; /* that leaked in helper processes */
};

/*
 * Returns what of the found leaks is kept to the end and not lost: nothing if some of them were not
 * judged.
 */
struct counted_sites torsh_leaks_kept(const struct leaks *leaks);

/* Compute the parts; suppress: the rules that the leaks were found with. */
struct leaks_parts torsh_leaks_parts(const struct leaks *leaks, const struct suppress *suppress);

/* Free the leaks. */
void torsh_leaks_free(struct leaks *leaks);

#endif
