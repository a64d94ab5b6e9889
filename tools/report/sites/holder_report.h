/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Who keeps the blocks of an allocation site: the recorded way from a root to one of them. */
#ifndef TORSH_REPORT_SITES_HOLDER_REPORT_H
#define TORSH_REPORT_SITES_HOLDER_REPORT_H

#include "tools/memory/allocation_sites.h"
#include "tools/symbols/stack_view.h"

struct holder_view {
	struct symbols *symbols;
	enum stack_view stacks;
};

/* Returns the way to a block of the site's stack, or of its line; NULL: none was recorded. */
const struct recorded_holder *torsh_holder_of(const struct holder_view *view,
					      const struct allocation_site *site);

/*
 * Returns the last thing on the way that has a name, "train.history[3]", or the root; NULL: no way
 * was recorded. The caller frees it.
 */
char *torsh_holder_name(const struct holder_view *view, const struct allocation_site *site);

/* Print the way on stdout as text. */
void torsh_holder_text(const struct holder_view *view, const struct allocation_site *site);

/* Print it on stdout as JSON: tools/schema/leaks-why.json. */
void torsh_holder_json(const struct holder_view *view, const struct allocation_site *site);

#endif
