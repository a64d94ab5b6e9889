/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Sentences on what a prediction assumes. */
#ifndef TORSH_MEMORY_WHATIF_ASSUMPTIONS_H
#define TORSH_MEMORY_WHATIF_ASSUMPTIONS_H

#include <stddef.h>

struct assumptions {
	char **items;
	size_t n, n_room;
};

/* Add a sentence, formatted as by printf. */
void torsh_assumptions_add(struct assumptions *assumptions, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Free the sentences. */
void torsh_assumptions_free(struct assumptions *assumptions);

#endif
