/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How much the totals of a comparison may grow: limits from a command line, for torsh diff and for
 * torsh check --baseline.
 */
#ifndef TORSH_COMMAND_DIFF_GROWTH_LIMITS_H
#define TORSH_COMMAND_DIFF_GROWTH_LIMITS_H

#include <argp.h>

#include "tools/compare/compare.h"

struct growth_limit {
	bool is_set, is_percent;
	double percent;
	uint64_t amount; /* in the total's unit, where it is no percentage */
};

struct growth_limits {
	struct growth_limit of_all; /* a percentage of each total that is known and has no own */
	struct growth_limit items[N_COMPARE_TOTALS];
};

enum growth_verdict { GROWTH_NOT_LIMITED, GROWTH_WITHIN, GROWTH_TOO_MUCH, GROWTH_UNKNOWN };

/* Does the text end in a percent sign? */
bool torsh_growth_is_percent(const char *text);

/* Parse "2%", and for a total also a size or a time. A wrong word ends the command with usage. */
struct growth_limit torsh_growth_percent(struct argp_state *state, const char *option,
					 const char *text);
struct growth_limit torsh_growth_limit(struct argp_state *state, const char *option,
				       const char *text, enum compare_total total);

/* Compare a total with its limit. Growth within the spread of the runs is no growth. */
enum growth_verdict torsh_growth_verdict(const struct growth_limits *limits,
					 const struct comparison *comparison,
					 enum compare_total total);

/* Does a total grow beyond its limit, or is one unknown that has one of its own? */
bool torsh_growth_is_too_much(const struct growth_limits *limits,
			      const struct comparison *comparison);

#endif
