/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which stacks an export merges, unless it holds all: what the import of an installed package
 * allocated is one entry below the line that imports it, "(import of torch)". What is below 0.1 % of
 * the whole, for each weight, is added up below the innermost frame that isn't, "(below 0.1 %)".
 * Sums are those of the stacks that were given.
 */
#ifndef TORSH_EXPORT_STACKS_MERGED_STACKS_H
#define TORSH_EXPORT_STACKS_MERGED_STACKS_H

#include "tools/base/containers/hash_map.h"
#include "tools/export/stacks/weighed_stacks.h"

/* Where a stack's weights are counted. */
struct stack_place {
	uint32_t stack; /* of the process */
	uint32_t label; /* index into labels; 0: the stack stands for itself */
};

struct merged_stacks {
	struct stack_place *places; /* by the number of a stack */
	char **labels;
	size_t n_labels, labels_room;
};

/* Find the places of all stacks of one process. totals: of the whole export, by weight. */
void torsh_stacks_merge(struct merged_stacks *merged, const struct weighed_stacks *stacks,
			const struct export_value totals[N_EXPORT_WEIGHTS],
			struct symbols *symbols);

/* Free the places and the labels. */
void torsh_stacks_merge_free(struct merged_stacks *merged);

/*
 * Samples that are ready to be written: with their addresses. Frames of the interpreter and of
 * Python's import machinery are left out, but for the innermost ones: a line of Python is one entry
 * however it was called.
 */
struct folded_samples {
	struct export_sample *items;
	size_t n, n_room;
	struct hash_map by_frames;
	struct merged_stacks merged;
};

/* Merge the stacks of one process, and fold their frames. The caller frees the result. */
void torsh_samples_fold(struct folded_samples *folded, const struct weighed_stacks *stacks,
			const struct export_value totals[N_EXPORT_WEIGHTS],
			struct symbols *symbols);

/* Free the samples, with the labels and addresses they refer to. */
void torsh_samples_fold_free(struct folded_samples *folded);

#endif
