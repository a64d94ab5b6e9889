/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What torch.compile's kernels were made of, out of the code that Inductor left in its cache
 * directory: before each call of a kernel stands a comment "Original ATen: [aten.add, aten.relu]".
 * The directory may hold what anybody wrote.
 */
#ifndef TORSH_DEVICE_KERNELS_INDUCTOR_H
#define TORSH_DEVICE_KERNELS_INDUCTOR_H

#include <stdbool.h>
#include <stddef.h>

struct inductor_kernel {
	char *name;
	char **operators; /* "aten::add", in the comment's order, each once */
	size_t n_operators;
	bool is_ambiguous; /* two models have other kernels of this name: then it shows nothing */
};

struct inductor {
	struct inductor_kernel *kernels; /* by name */
	size_t n, n_room;
	size_t n_files; /* that were read */
};

/* Read all code below the folder. What isn't there, or can't be read, is left out. */
void torsh_inductor_read(struct inductor *inductor, const char *folder);

/*
 * Take the kernels of one file's text. For torsh_inductor_read, and for tests; torsh_inductor_sort
 * comes after the last.
 */
void torsh_inductor_parse(struct inductor *inductor, const char *text);

/* Sort the kernels by name, before the first lookup. */
void torsh_inductor_sort(struct inductor *inductor);

/* The kernel of that name, NULL: none, or an ambiguous one. inductor may be NULL. */
const struct inductor_kernel *torsh_inductor_find(const struct inductor *inductor,
						  const char *name);

void torsh_inductor_free(struct inductor *inductor);

#endif
