/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The parts of the steps' critical path that stand out, if any does. */
#ifndef TORSH_ANALYSIS_CRITICAL_BOTTLENECKS_H
#define TORSH_ANALYSIS_CRITICAL_BOTTLENECKS_H

#include "tools/analysis/critical/critical.h"
#include "tools/symbols/symbols.h"

enum bottleneck_kind {
#define BOTTLENECK(NAME, name, ...) BOTTLENECK_##NAME,
#include "tools/analysis/critical/bottlenecks.def"
#undef BOTTLENECK
	N_BOTTLENECKS
};

struct bottleneck {
	enum bottleneck_kind kind;
	const char *name, *text, *next;
	double share_pct; /* of the steps' time, on the path */
	uint64_t ns; /* the same */
	uint64_t gain_ns; /* by which all steps together would be shorter without it */
	char *evidence; /* a sentence without its end */
};

struct bottlenecks {
	struct bottleneck items[N_BOTTLENECKS]; /* the largest share first */
	size_t n;
};

/* Find them. The caller frees them. */
void torsh_bottlenecks_find(struct bottlenecks *bottlenecks, const struct critical *critical,
			    struct symbols *symbols);

/* Free them. */
void torsh_bottlenecks_free(struct bottlenecks *bottlenecks);

/* What a row of the path is, for people: an operator, a kernel, or its kind in words. */
const char *torsh_critical_what(const struct critical_row *row, struct symbols *symbols);

/* Returns "thread main" or "stream 7 of device 0"; the caller frees it. */
char *torsh_critical_lane_text(const struct critical *critical, size_t lane);

/* Returns the lane with most of the path; there is one. */
size_t torsh_critical_chain(const struct critical *critical);

#define CRITICAL_NOTES 4u

/*
 * Say what of the path is not known, or is only taken from times. Returns how many sentences there
 * are; the caller frees each.
 */
size_t torsh_critical_notes(const struct critical *critical, char *notes[CRITICAL_NOTES]);

#endif
