/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which blocks of a process could be reached at a moment, and who kept them: made from the moment
 * and the memory of then, on any thread.
 */
#ifndef TORSH_WRITER_REACHABILITY_JUDGEMENT_H
#define TORSH_WRITER_REACHABILITY_JUDGEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/writer/reachability/block_index.h"
#include "tools/writer/reachability/holders/holders.h"
#include "tools/writer/reachability/judged_moment.h"
#include "tools/writer/reachability/python/python_account.h"
#include "tools/writer/reachability/verdicts.h"

/* Of the sums: an enum verdict, or this. */
#define VERDICT_FREED_AT_EXIT N_VERDICTS /* was there when the exit began, and is not any more */
#define N_VERDICT_SUMS (N_VERDICTS + 1)

/* Live blocks of a site with one verdict: most sites have one. */
struct verdict_sum {
	uint32_t site;
	uint32_t next; /* the site's next sum, in any order of verdicts; 0: none */
	uint64_t blocks : 60, verdict : 3;
	uint64_t is_first : 1; /* of the site */
	uint64_t bytes;
};

_Static_assert(N_VERDICT_SUMS <= 8, "a sum's verdict has 3 bits");

struct judgement {
	int error; /* positive: why its memory can't be read; 0: it was */
	bool is_of_copy; /* read from a copy of the process, which went on */
	uint64_t at_ns, read_bytes; /* session time */
	uint32_t n_threads;
	uint64_t stamp; /* blocks from then on are younger */
	/* The blocks and their verdicts, where the exit begins: the last judgement needs them. */
	struct block_index index;
	struct verdicts verdicts;
	/* Else the sums of each site that has blocks. */
	struct verdict_sum *sums;
	uint32_t n_sums;
	struct holders holders; /* of kept blocks, without those of the judgement before */
	struct python_account python;
};

struct judging_options {
	const struct judgement
		*before; /* of where the exit began; NULL: that is this one, or not known */
	bool is_begin; /* the exit begins: blocks and verdicts are kept */
	void (*go_on)(void *context); /* called now and then */
	void *context;
};

/* Make it, and free the moment's blocks. Free it with torsh_judgement_free. */
void torsh_judgement_make(struct judgement *judgement, struct judged_moment *moment,
			  const struct judging_options *options);

/* No judgement is made of what follows on this one: free its blocks and verdicts. */
void torsh_judgement_free_blocks(struct judgement *judgement);

/* Free what it has. */
void torsh_judgement_free(struct judgement *judgement);

#endif
