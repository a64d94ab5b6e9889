/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/ranks/fold_inputs.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/command/reading.h"
#include "tools/ranks/fold/fold_merge.h"
#include "tools/ranks/make/fold_make.h"

/* ---- the list -------------------------------------------------------------------------------- */

static void add_path(struct fold_inputs *inputs, char *path)
{
	inputs->paths = torsh_array_reserve(inputs->paths, inputs->n, &inputs->n_room,
					    sizeof(*inputs->paths));
	inputs->paths[inputs->n++] = path;
}

static const char *ending;

static int has_ending(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name), n_ending = strlen(ending);

	return n > n_ending && strcmp(entry->d_name + n - n_ending, ending) == 0;
}

/* Returns how many files of a directory end so. */
static size_t add_files(struct fold_inputs *inputs, const char *path, const char *with)
{
	struct dirent **entries;
	int n;

	ending = with;
	n = scandir(path, &entries, has_ending, alphasort);
	if (n < 0)
		torsh_die("%s can't be read: %s", path, strerror(errno));
	for (int i = 0; i < n; i++) {
		add_path(inputs, torsh_need_text("%s/%s", path, entries[i]->d_name));
		free(entries[i]);
	}
	free(entries);
	return (size_t)n;
}

/* Add a file itself; returns false for a directory. */
static bool add_file(struct fold_inputs *inputs, const char *path)
{
	struct stat status;

	if (stat(path, &status) < 0)
		torsh_die("%s can't be read: %s", path, strerror(errno));
	if (S_ISDIR(status.st_mode))
		return false;
	add_path(inputs, torsh_need_text("%s", path));
	return true;
}

void torsh_fold_inputs_add_recordings(struct fold_inputs *inputs, const char *path)
{
	if (!add_file(inputs, path) && !add_files(inputs, path, ".torsh"))
		torsh_die("%s has no recordings (*.torsh)", path);
}

void torsh_fold_inputs_add(struct fold_inputs *inputs, const char *path)
{
	if (add_file(inputs, path))
		return;
	if (!add_files(inputs, path, ".fold") && !add_files(inputs, path, ".torsh"))
		torsh_die("%s has neither folds (*.fold) nor recordings (*.torsh)", path);
}

void torsh_fold_inputs_add_traces(struct fold_inputs *inputs, const char *path)
{
	if (!add_file(inputs, path) &&
	    !(add_files(inputs, path, ".json.gz") + add_files(inputs, path, ".json")))
		torsh_die("%s has no traces (*.json.gz or *.json)", path);
}

void torsh_fold_inputs_free(struct fold_inputs *inputs)
{
	for (size_t i = 0; i < inputs->n; i++)
		free(inputs->paths[i]);
	free(inputs->paths);
	*inputs = (struct fold_inputs){0};
}

/* ---- one recording --------------------------------------------------------------------------- */

static int compare_rows(const void *a, const void *b)
{
	const Torsh__FoldRank *const *x = a, *const *y = b;
	uint64_t x_rank = (*x)->has_rank ? (*x)->rank + UINT64_C(1) : 0,
		 y_rank = (*y)->has_rank ? (*y)->rank + UINT64_C(1) : 0;

	return (x_rank > y_rank) - (x_rank < y_rank);
}

void torsh_fold_recording(const char *path, const struct fold_choice *choice, const char *output)
{
	struct read_options options = {.path = path,
				       .without_lines = true,
				       .has_rank = choice->has_rank,
				       .rank = choice->rank,
				       .has_pid = choice->has_pid,
				       .pid = choice->pid};
	struct reading reading;
	struct folded folded = {.n_samples = choice->n_samples};
	struct fold_writer *writer;

	torsh_reading_open(&reading, &options);
	torsh_fold_make(&folded, reading.recording, reading.processes, reading.n_processes,
			reading.symbols);
	qsort(folded.ranks, folded.n_ranks, sizeof(*folded.ranks), compare_rows);
	writer = torsh_fold_write(output);
	for (size_t i = 0; i < folded.n_ranks; i++)
		torsh_fold_write_rank(writer, folded.ranks[i]);
	torsh_fold_write_end(writer, folded.fold);
	torsh_folded_free(&folded);
	torsh_reading_close(&reading, &options);
}

/* ---- merge ----------------------------------------------------------------------------------- */

/* Merge inputs first to first + n - 1 in this process. */
static void merge_share(const struct fold_inputs *inputs, size_t first, size_t n,
			const char *output)
{
	const char **folds = torsh_need_items(NULL, 0, n, sizeof(*folds));
	struct fold_inputs made = {0};

	for (size_t i = 0; i < n; i++) {
		folds[i] = inputs->paths[first + i];
		if (torsh_fold_is_fold(folds[i]))
			continue;
		add_path(&made, torsh_need_text("%s.%zu.part", output, i));
		torsh_fold_recording(folds[i], &(struct fold_choice){0}, made.paths[made.n - 1]);
		folds[i] = made.paths[made.n - 1];
	}
	torsh_fold_merge_files(folds, n, output);
	for (size_t i = 0; i < made.n; i++)
		unlink(made.paths[i]);
	torsh_fold_inputs_free(&made);
	free(folds);
}

/* Wait for n processes. Returns whether all have succeeded; they print why not. */
static bool await(const pid_t *pids, size_t n)
{
	bool is_good = true;

	for (size_t i = 0; i < n; i++) {
		int status;

		while (waitpid(pids[i], &status, 0) < 0 && errno == EINTR)
			;
		is_good &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
	}
	return is_good;
}

static pid_t start_share(const struct fold_inputs *inputs, size_t first, size_t n,
			 const char *output)
{
	pid_t pid = fork();

	if (pid < 0)
		torsh_die("can't start a process: %s", strerror(errno));
	if (pid)
		return pid;
	merge_share(inputs, first, n, output);
	_exit(0);
}

void torsh_fold_inputs_merge(const struct fold_inputs *inputs, const char *output, size_t n_jobs)
{
	size_t n = n_jobs < inputs->n ? n_jobs : inputs->n;
	struct fold_inputs parts = {0};
	bool is_good;
	pid_t *pids;

	if (n < 2) {
		merge_share(inputs, 0, inputs->n, output);
		return;
	}
	pids = torsh_need_items(NULL, 0, n, sizeof(*pids));
	fflush(NULL);
	for (size_t i = 0; i < n; i++) {
		size_t first = i * inputs->n / n, next = (i + 1) * inputs->n / n;

		add_path(&parts, torsh_need_text("%s.part-%zu", output, i));
		pids[i] = start_share(inputs, first, next - first, parts.paths[i]);
	}
	is_good = await(pids, n);
	if (is_good)
		torsh_fold_merge_files((const char *const *)parts.paths, n, output);
	for (size_t i = 0; i < n; i++)
		unlink(parts.paths[i]);
	free(pids);
	torsh_fold_inputs_free(&parts);
	if (!is_good)
		exit(TORSH_EXIT_UNREADABLE);
}
