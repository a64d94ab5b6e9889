/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Folds and recordings that commands about ranks are given. */
#ifndef TORSH_COMMAND_RANKS_FOLD_INPUTS_H
#define TORSH_COMMAND_RANKS_FOLD_INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Paths of folds and recordings, the list's own. */
struct fold_inputs {
	char **paths;
	size_t n, n_room;
};

/*
 * Add what a path stands for: a file itself; a directory its folds or, without folds, its
 * recordings (in the order of their names). Ends the program if it has neither.
 */
void torsh_fold_inputs_add(struct fold_inputs *inputs, const char *path);

/*
 * Likewise for traces of PyTorch's profiler: a directory stands for the files in it that end in
 * .json.gz or .json.
 */
void torsh_fold_inputs_add_traces(struct fold_inputs *inputs, const char *path);

/* Likewise with recordings only, also of a directory that has folds. */
void torsh_fold_inputs_add_recordings(struct fold_inputs *inputs, const char *path);

/* Free the list. */
void torsh_fold_inputs_free(struct fold_inputs *inputs);

/* Which processes of a recording are folded. */
struct fold_choice {
	bool has_rank, has_pid;
	uint32_t rank, pid;
	size_t n_samples; /* collectives that are kept of a process, about; 0: FOLD_SAMPLES */
};

/* Fold a recording into a file. Ends the program if the recording can't be read. */
void torsh_fold_recording(const char *path, const struct fold_choice *choice, const char *output);

/*
 * Merge the inputs into the file output, in up to n_jobs processes; recordings are folded first.
 * Temporary files lie beside output. Ends the program if an input can't be read, or if a process
 * failed.
 */
void torsh_fold_inputs_merge(const struct fold_inputs *inputs, const char *output, size_t n_jobs);

#endif
