/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Makes an account of a target's resident memory from a look at it and what is known of it. */
#ifndef TORSH_WRITER_RESIDENCY_ACCOUNT_TAKE_H
#define TORSH_WRITER_RESIDENCY_ACCOUNT_TAKE_H

#include "tools/writer/residency/account.h"
#include "tools/writer/residency/memory_look.h"

struct target;

#define ANCESTORS_MAX 8u

struct account_source {
	const struct target *target;
	/* that it was forked from, then what that one was forked from, as far as they still run */
	const struct target *ancestors[ANCESTORS_MAX];
	uint32_t n_ancestors;
	/* anonymous pages when its fork was seen; NULL: it is no fork, or they are not known */
	const struct page_runs *inherited;
	uint64_t left_bytes; /* memory that the writer may still take */
};

/* An account that is being made. */
struct account_taking;

/*
 * Begin an account, which is freed first: collect what is live now. Until it is divided or dropped
 * the account and the look must stay where they are, and the target's tables must stay.
 */
struct account_taking *torsh_account_collect(struct account *account,
					     const struct memory_look *look,
					     const struct account_source *source);

/* Make it of what was collected, which is freed. It takes longer, and may be done later. */
void torsh_account_divide(struct account_taking *taking);

/* Free what was collected; the account stays empty. May be NULL. */
void torsh_account_drop(struct account_taking *taking);

#endif
