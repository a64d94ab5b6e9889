/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The operators that torch.compile fused into each kernel, from the code in Inductor's cache
 * directory: a comment "Original ATen: [aten.add, aten.relu]" precedes each call of a kernel. Over
 * its definition the comment also has its graph, with sizes. The directory is untrusted.
 */
#ifndef TORSH_DEVICE_KERNELS_INDUCTOR_H
#define TORSH_DEVICE_KERNELS_INDUCTOR_H

#include <stdbool.h>
#include <stddef.h>

struct inductor_kernel {
	char *name;
	char **operators; /* "aten::add", in the comment's order, without repetition */
	size_t n_operators;
	/* What is over its definitions, from "Original ATen" on, without repetition. */
	char **comments;
	size_t n_comments;
	bool is_ambiguous; /* two models have different kernels of this name: unusable */
};

struct inductor {
	struct inductor_kernel *kernels; /* by name */
	size_t n, n_room;
	size_t n_files; /* files read */
};

/* Read all code below the folder; missing and unreadable files are skipped. */
void torsh_inductor_read(struct inductor *inductor, const char *folder);

/*
 * Read the kernels from one file's text. For torsh_inductor_read and tests; call
 * torsh_inductor_sort after the last one.
 */
void torsh_inductor_parse(struct inductor *inductor, const char *text);

/* Sort the kernels by name, before the first lookup. */
void torsh_inductor_sort(struct inductor *inductor);

/* Returns the kernel of that name; NULL: none, or ambiguous. inductor may be NULL. */
const struct inductor_kernel *torsh_inductor_find(const struct inductor *inductor,
						  const char *name);

/* Free the kernels. */
void torsh_inductor_free(struct inductor *inductor);

#endif
