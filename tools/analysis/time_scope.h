/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The analysed time: a process's steps or, without steps, its run; restricted to a window. */
#ifndef TORSH_ANALYSIS_TIME_SCOPE_H
#define TORSH_ANALYSIS_TIME_SCOPE_H

#include "tools/timeline/prepass/prepass.h"

struct time_scope {
	/* in time order, without overlap; the run if no steps are known */
	struct step *intervals;
	size_t n;
	bool is_of_steps;
	bool is_open; /* the last step ends because the process does */
	/*
	 * Without the last step if is_open, because that contains all that followed it. Of these,
	 * the steady ones begin at first_steady.
	 */
	size_t n_whole, first_steady; /* first_steady is n_whole if there are none */
	uint64_t ns, steady_ns;
};

/* Fill the scope with the steps of a process between from_ns and to_ns. */
void torsh_scope_create(struct time_scope *scope, const struct prepass_process *of,
			uint64_t from_ns, uint64_t to_ns);
/* If is_open, move the end of the last step to the end of the last activity. */
void torsh_scope_trim(struct time_scope *scope, uint64_t last_work_ns);

/* Free the scope. */
void torsh_scope_destroy(struct time_scope *scope);

/* Returns the interval that contains a time, or STEP_NONE. */
size_t torsh_scope_at(const struct time_scope *scope, uint64_t at_ns);

/* Returns how much of a time range lies in the scope. */
uint64_t torsh_scope_within(const struct time_scope *scope, uint64_t from_ns, uint64_t to_ns);

#endif
