/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Loops that call one operator on inputs of one small shape, over and over: of each the time from
 * its first call in a step to the end of its last one there, with all that is between.
 */
#ifndef TORSH_REPORT_BRIEF_LOOPED_CALLS_H
#define TORSH_REPORT_BRIEF_LOOPED_CALLS_H

#include "tools/base/containers/hash_map.h"
#include "tools/timeline/spans.h"

#define LOOP_CALLS_MIN 64u /* in a step; ours: as many as a small batch has rows */
#define LOOP_ELEMENTS_MAX 4096u /* of a call's tensors; ours: less work than calling it takes */

struct looped_call {
	uint32_t name, inputs, stack; /* labels of its process */
	size_t step; /* of the calls below */
	uint64_t n, first_ns, end_ns;
	uint64_t n_all, ns; /* of its loops so far */
};

/* Zeros are none. */
struct looped_calls {
	struct looped_call *items;
	size_t n, n_room;
	struct hash_map known;
};

/* Add a call that no operator encloses, of a step, with that many elements in its tensors. */
void torsh_looped_calls_add(struct looped_calls *calls, const struct span *span, size_t step,
			    uint64_t elements);

/* After the last call: returns the loop with most time, or NULL. Valid until they are freed. */
const struct looped_call *torsh_looped_calls_longest(struct looped_calls *calls);

/* Free them. */
void torsh_looped_calls_free(struct looped_calls *calls);

#endif
