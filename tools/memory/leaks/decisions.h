/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What decides for the allocation sites of one process which are leaks, and what the others are. */
#ifndef TORSH_MEMORY_LEAKS_DECISIONS_H
#define TORSH_MEMORY_LEAKS_DECISIONS_H

#include "tools/base/containers/intern.h"
#include "tools/frames/address_kinds.h"
#include "tools/memory/leaks/import_runs.h"
#include "tools/memory/leaks/rules/rulings.h"
#include "tools/memory/site_reader.h"

/* Unused lists are NULL. */
struct decisions {
	bool of_device; /* the sites are memory of a device */
	bool without_imports; /* what packages keep is a leak */
	struct rules rules; /* zeroed: without rules */
	struct address_kinds kinds;
	struct import_runs runs;
	/* of one list of sites */
	struct ruling *rulings;
	const char **kept; /* the kinds of bookkeeping */
	const char **packages; /* names of the packages that the imports belong to */
	struct intern names;
	const char **users; /* the packages that keep them since their first use */
	size_t n;
};

/* Start, when the first two members are set and the others are zero; suppress may be NULL. */
void torsh_decisions_start(struct decisions *decisions, const struct recorded_process *process,
			   struct symbols *symbols, struct suppress *suppress);

/* Decide about sites, in place of those before. */
void torsh_decisions_find(struct decisions *decisions, const struct site_reader *sites);

/* Free what was found. */
void torsh_decisions_end(struct decisions *decisions);

#endif
