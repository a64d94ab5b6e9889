/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Two sets of runs, as arguments: BEFORE AFTER, or BEFORE... -- AFTER... */
#ifndef TORSH_COMMAND_RUN_SETS_H
#define TORSH_COMMAND_RUN_SETS_H

#include <argp.h>
#include <stddef.h>

struct run_sets {
	char **paths; /* before, then after */
	size_t n_before, n, room;
};

/* Take the next argument: ARGP_KEY_ARG. */
void torsh_run_sets_add(struct run_sets *sets, const char *argument,
			const struct argp_state *state);

/* Check them: ARGP_KEY_END. Ends the program with a usage message. */
void torsh_run_sets_check(struct run_sets *sets, struct argp_state *state);

/*
 * Take each recording of a directory for a run, and of a directory without any those of the
 * directories in it, by name.
 */
void torsh_run_sets_expand(struct run_sets *sets);

/* Free the paths. */
void torsh_run_sets_free(struct run_sets *sets);

#endif
