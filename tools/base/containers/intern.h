/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Interned strings: one copy of each text, so that equal texts have equal pointers. A hash_map.h
 * keyed by text, with unused values.
 */
#ifndef TORSH_BASE_CONTAINERS_INTERN_H
#define TORSH_BASE_CONTAINERS_INTERN_H

#include "tools/base/containers/hash_map.h"

struct intern {
	struct hash_map map;
};

/* The one copy of text; NULL for NULL. */
const char *torsh_intern(struct intern *intern, const char *text);

/* Free all texts. */
void torsh_intern_free(struct intern *intern);

#endif
