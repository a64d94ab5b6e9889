/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The analysed time: a process's steps or, without steps, its run; minus what lies outside of a
 * window.
 */
#ifndef TORSH_ANALYSIS_TIME_SCOPE_H
#define TORSH_ANALYSIS_TIME_SCOPE_H

#include "tools/timeline/prepass/prepass.h"

struct time_scope {
	/* in time order; they do not overlap. The run if no steps are known */
	struct step *intervals;
	size_t n;
	bool is_of_steps;
	bool is_open; /* the last step ends because the process does */
	/*
	 * Without the last step where is_open, which holds whatever came after it. Of those that
	 * are left, the steady ones begin at first_steady.
	 */
	size_t n_whole, first_steady; /* first_steady is n_whole where none is */
	uint64_t ns, steady_ns;
};

/* Fill the scope with the steps of a process between from_ns and to_ns. */
void torsh_scope_create(struct time_scope *scope, const struct prepass_process *of,
			uint64_t from_ns, uint64_t to_ns);
/* Where is_open: let the last step end when the last work did. */
void torsh_scope_trim(struct time_scope *scope, uint64_t last_work_ns);

/* Free the scope. */
void torsh_scope_destroy(struct time_scope *scope);

/* The span in which something happened, or STEP_NONE. */
size_t torsh_scope_at(const struct time_scope *scope, uint64_t at_ns);

/* How much of a stretch of time lies in the scope. */
uint64_t torsh_scope_within(const struct time_scope *scope, uint64_t from_ns, uint64_t to_ns);

#endif
