/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Limits on the growth of a comparison's totals, from the command line of torsh diff and of torsh
 * check --baseline.
 */
#ifndef TORSH_COMMAND_DIFF_GROWTH_LIMITS_H
#define TORSH_COMMAND_DIFF_GROWTH_LIMITS_H

#include <argp.h>

#include "tools/compare/compare.h"

struct growth_limit {
	bool is_set, is_percent;
	double percent;
	uint64_t amount; /* in the total's unit; unless it is a percentage */
};

struct growth_limits {
	struct growth_limit of_all; /* a percentage for each known total without its own limit */
	struct growth_limit items[N_COMPARE_TOTALS];
};

enum growth_verdict { GROWTH_NOT_LIMITED, GROWTH_WITHIN, GROWTH_TOO_MUCH, GROWTH_UNKNOWN };

/* Returns whether the text ends in a percent sign. */
bool torsh_growth_is_percent(const char *text);

/*
 * Parse "2%", and for a total also a size or a time. An invalid text ends the command with a usage
 * message.
 */
struct growth_limit torsh_growth_percent(struct argp_state *state, const char *option,
					 const char *text);
struct growth_limit torsh_growth_limit(struct argp_state *state, const char *option,
				       const char *text, enum compare_total total);

/* Compare a total with its limit. Growth within the spread of the runs is no growth. */
enum growth_verdict torsh_growth_verdict(const struct growth_limits *limits,
					 const struct comparison *comparison,
					 enum compare_total total);

/* Returns whether a total grows beyond its limit, or one with its own limit is unknown. */
bool torsh_growth_is_too_much(const struct growth_limits *limits,
			      const struct comparison *comparison);

#endif
