/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The host's time in operators and between them, in the steps after the first: what the rules about
 * a program without devices use.
 */
#ifndef TORSH_ANALYSIS_HOST_OPERATOR_TIME_H
#define TORSH_ANALYSIS_HOST_OPERATOR_TIME_H

#include "tools/analysis/time_scope.h"
#include "tools/timeline/device/busy.h"

#define LONG_GAP_NS 1000000u /* a thousand times what Python takes for a call: not a call */
#define SHORT_OPERATOR_NS 10000u /* as long as it takes Python and PyTorch to call an operator */

struct operator_time {
	/* an operator ran, a DataLoader loaded or Python's garbage collector ran, on any thread */
	struct busy covered;
	/* operators that call no other */
	uint64_t n_leaves, leaves_ns, n_short, short_ns; /* short: below SHORT_OPERATOR_NS */
	/* copies from one type of number to another, and the longest of them */
	uint64_t n_conversions, conversions_ns, longest_conversion_ns;
	uint64_t conversion_at_ns; /* of the longest, as its stack */
	uint32_t conversion_stack;
	bool has_copies, has_inputs; /* some copy, and one that has its types */
	/* by torsh_operator_time_settle: time in no operator */
	uint64_t n_long_gaps, long_gaps_ns, longest_gap_ns, n_short_gaps, short_gaps_ns;
	uint64_t longest_gap_at_ns, longest_short_gap_ns, longest_short_gap_at_ns;
	uint64_t longest_short_ns, longest_short_at_ns; /* of short operators */
	uint64_t longest_gap_step; /* its number */
};

/* Add an operator or a range that ended. */
void torsh_operator_time_add(struct operator_time *time, const struct time_scope *scope,
			     const struct span *span);

/* After the last: find the gaps in the scope. */
void torsh_operator_time_settle(struct operator_time *time, const struct time_scope *scope);

/* Free the intervals. */
void torsh_operator_time_free(struct operator_time *time);

#endif
