/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Where a forked process was when it broke pages that it inherited: the faults of its first thread
 * are sampled, and those that were at an inherited page are counted by line. Owned by the drain
 * thread.
 *
 * A page that was inherited is there and can be read: a fault at it is a write, the first one since
 * the fork.
 */
#ifndef TORSH_WRITER_RESIDENCY_BREAKS_PAGE_BREAKS_H
#define TORSH_WRITER_RESIDENCY_BREAKS_PAGE_BREAKS_H

#include "tools/writer/residency/account.h"
#include "tools/writer/residency/breaks/code_lines.h"
#include "tools/writer/residency/breaks/fault_samples.h"
#include "tools/writer/residency/memory_look.h"

struct target;

struct page_breaks {
	bool is_open;
	int error; /* why not; 0: not tried */
	struct fault_samples samples;
	struct code_lines code;
	uint64_t every; /* of how many faults one is sampled */
	uint64_t n_taken; /* samples, at any address */
	uint64_t n_until_rarer; /* when they are sampled half as often */
	struct account_breaks sums;
};

/* Begin to sample a process that was just forked and has so much in memory. */
void torsh_page_breaks_begin(struct page_breaks *breaks, pid_t pid, uint64_t resident_bytes);

/* Find its interpreter, in the first look at its memory. */
void torsh_page_breaks_find_code(struct page_breaks *breaks, pid_t pid,
				 const struct memory_look *look);

/* Count what was sampled so far; inherited: its pages at the fork. */
void torsh_page_breaks_take(struct page_breaks *breaks, struct target *target,
			    const struct page_runs *inherited);

/* End it, and free it. */
void torsh_page_breaks_end(struct page_breaks *breaks);

#endif
