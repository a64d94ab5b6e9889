/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a process did between two of its collectives, and how much of a collective was exposed. */
#ifndef TORSH_RANKS_MAKE_LEAD_H
#define TORSH_RANKS_MAKE_LEAD_H

#include "tools/ranks/make/process_pass.h"

/* Queries are in the order of the pass's collectives. Zeros are the start. */
struct lead_cursor {
	size_t gc, data, compute, waiting, exposed;
	uint64_t last_entered_ns;
	struct busy under_way; /* compute, and earlier collectives while they were under way */
	bool is_ready;
};

/* Get fold_leads.def for collective i; all 0 for the first one. */
void torsh_lead_of(struct lead_cursor *cursor, const struct process_pass *pass, size_t i,
		   uint64_t leads[N_FOLD_LEADS]);

/* Returns the time of collective i in which the process, or its device, computed nothing. */
uint64_t torsh_lead_exposed(struct lead_cursor *cursor, const struct process_pass *pass, size_t i);

/* Free the cursor. */
void torsh_lead_end(struct lead_cursor *cursor);

#endif
