/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The lines at which a forked process broke pages that it inherited, as sampled. */
#ifndef TORSH_MEMORY_RSS_BROKEN_PLACES_H
#define TORSH_MEMORY_RSS_BROKEN_PLACES_H

#include "tools/recording/recording.h"
#include "tools/symbols/symbols.h"

struct broken_place {
	const struct frame *frame; /* of the symbols; NULL: not known */
	uint64_t samples;
	uint64_t pages; /* that these stand for */
};

struct broken_places {
	struct broken_place *items; /* those with most first, what is not known last */
	size_t n;
	uint64_t samples, pages; /* of all */
};

/* Make the list for an account of the process; the symbols must outlive it. */
void torsh_broken_places_make(struct broken_places *places, const struct recorded_process *process,
			      const struct recorded_account *account, struct symbols *symbols);

/* Free it. */
void torsh_broken_places_free(struct broken_places *places);

/* Returns which part of the pages were broken there, from 0 to 1. */
double torsh_broken_share(const struct broken_places *places, const struct broken_place *place);

/*
 * Returns the half width of the interval around that share which contains the true one in 95 of 100
 * cases, if the samples are independent: Agresti and Coull, The American Statistician 52 (1998).
 */
double torsh_broken_error(const struct broken_places *places, const struct broken_place *place);

#endif
