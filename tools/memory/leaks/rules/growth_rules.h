/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What grows and is known: rules that suppress leaks, of which one names a ring that fills. */
#ifndef TORSH_MEMORY_LEAKS_RULES_GROWTH_RULES_H
#define TORSH_MEMORY_LEAKS_RULES_GROWTH_RULES_H

#include "tools/memory/growth/growth.h"

struct suppress;
struct symbols;

/*
 * Take sites that a rule "leak:" names out of those found: suppressed. Before stacks are merged;
 * the rules of suppress, NULL for none, which are not counted as used.
 */
void torsh_growth_suppress(struct growth *growth, const struct suppress *suppress,
			   struct symbols *symbols);

#endif
