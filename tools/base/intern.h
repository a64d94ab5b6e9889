/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Texts, each once, so that equal ones can be compared by pointer. */
#ifndef TORSH_BASE_INTERN_H
#define TORSH_BASE_INTERN_H

#include <stddef.h>

struct intern {
	char **slots;
	size_t n, n_slots;
};

/* The one copy of text; NULL for NULL. */
const char *torsh_intern(struct intern *intern, const char *text);

void torsh_intern_free(struct intern *intern);

#endif
