/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/run_sets.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

#define ENDING ".torsh"

static void add(struct run_sets *sets, char *path)
{
	sets->paths = torsh_array_reserve(sets->paths, sets->n, &sets->room, sizeof(*sets->paths));
	sets->paths[sets->n++] = path;
}

void torsh_run_sets_add(struct run_sets *sets, const char *argument, const struct argp_state *state)
{
	/* Without "--" the first of two paths is the set before. */
	bool is_after = state->quoted && state->next > state->quoted;

	add(sets, torsh_need(strdup(argument)));
	if (!is_after)
		sets->n_before = sets->n;
}

void torsh_run_sets_check(struct run_sets *sets, struct argp_state *state)
{
	if (sets->n == 2 && sets->n_before != 1)
		sets->n_before = 1;
	if (sets->n < 2)
		argp_error(state, "which recordings? Give one from before and one from after");
	if (!sets->n_before || sets->n_before == sets->n)
		argp_error(state,
			   "of several recordings, which are those after? Put -- before them");
}

static int is_recording(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name);

	return n > strlen(ENDING) && strcmp(entry->d_name + n - strlen(ENDING), ENDING) == 0;
}

static int is_shown(const struct dirent *entry)
{
	return *entry->d_name != '.';
}

/* Add the recordings of a directory; false: there are none. */
static bool add_recordings(struct run_sets *sets, const char *directory)
{
	struct dirent **entries = NULL;
	int n = scandir(directory, &entries, is_recording, alphasort);

	for (int i = 0; i < n; i++) {
		add(sets, torsh_need_text("%s/%s", directory, entries[i]->d_name));
		free(entries[i]);
	}
	free(entries);
	return n > 0;
}

/* Add what a path stands for; what is no directory with recordings is left to the reader. */
static void add_runs(struct run_sets *sets, const char *path)
{
	struct dirent **entries = NULL;
	size_t n_before = sets->n;
	int n;

	if (add_recordings(sets, path))
		return;
	n = scandir(path, &entries, is_shown, alphasort);
	for (int i = 0; i < n; i++) {
		char *inner = torsh_need_text("%s/%s", path, entries[i]->d_name);

		add_recordings(sets, inner);
		free(inner);
		free(entries[i]);
	}
	free(entries);
	if (sets->n == n_before)
		add(sets, torsh_need(strdup(path)));
}

void torsh_run_sets_expand(struct run_sets *sets)
{
	struct run_sets all = {0};

	for (size_t i = 0; i < sets->n; i++) {
		add_runs(&all, sets->paths[i]);
		if (i + 1 == sets->n_before)
			all.n_before = all.n;
	}
	torsh_run_sets_free(sets);
	*sets = all;
}

void torsh_run_sets_free(struct run_sets *sets)
{
	for (size_t i = 0; i < sets->n; i++)
		free(sets->paths[i]);
	free(sets->paths);
}
