/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/diff/growth_limits.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tools/command/arguments.h"

bool torsh_growth_is_percent(const char *text)
{
	size_t n = strlen(text);

	return n && text[n - 1] == '%';
}

struct growth_limit torsh_growth_percent(struct argp_state *state, const char *option,
					 const char *text)
{
	struct growth_limit limit = {.is_set = true, .is_percent = true};
	char *end;

	limit.percent = strtod(text, &end);
	if (!isdigit((unsigned char)*text) || strcmp(end, "%") != 0)
		argp_error(state, "--%s takes a percentage like 2%% or 0.5%%, not \"%s\"", option,
			   text);
	return limit;
}

struct growth_limit torsh_growth_limit(struct argp_state *state, const char *option,
				       const char *text, enum compare_total total)
{
	struct growth_limit limit = {.is_set = true};

	if (torsh_growth_is_percent(text))
		return torsh_growth_percent(state, option, text);
	limit.amount = total == COMPARE_step_median_ns
			       ? torsh_argument_duration(state, option, text)
			       : torsh_argument_size(state, option, text);
	return limit;
}

enum growth_verdict torsh_growth_verdict(const struct growth_limits *limits,
					 const struct comparison *comparison,
					 enum compare_total total)
{
	const struct growth_limit *own = &limits->items[total];
	const struct growth_limit *limit = own->is_set ? own : &limits->of_all;
	const struct change *change = &comparison->totals[total].change;

	if (!limit->is_set || (!own->is_set && !change->is_known))
		return GROWTH_NOT_LIMITED;
	if (!change->is_known)
		return GROWTH_UNKNOWN;
	if (!change->is_change || change->after < change->before)
		return GROWTH_WITHIN;
	if (limit->is_percent ? torsh_change_percent(change) > limit->percent
			      : change->after - change->before > limit->amount)
		return GROWTH_TOO_MUCH;
	return GROWTH_WITHIN;
}

bool torsh_growth_is_too_much(const struct growth_limits *limits,
			      const struct comparison *comparison)
{
	for (enum compare_total total = 0; total < N_COMPARE_TOTALS; total++) {
		if (torsh_growth_verdict(limits, comparison, total) >= GROWTH_TOO_MUCH)
			return true;
	}
	return false;
}
