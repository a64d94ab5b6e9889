/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* See tools/base/intern.h. Open addressing, at most half full. */
#include "tools/base/intern.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "tools/base/die.h"

static char **find_slot(struct intern *intern, const char *text)
{
	size_t i = XXH64(text, strlen(text), 0) & (intern->n_slots - 1);

	while (intern->slots[i] && strcmp(intern->slots[i], text) != 0)
		i = (i + 1) & (intern->n_slots - 1);
	return &intern->slots[i];
}

static void grow_slots(struct intern *intern)
{
	struct intern larger = {.n = intern->n,
				.n_slots = intern->n_slots ? intern->n_slots * 2 : 1024};

	larger.slots = torsh_need_items(NULL, 0, larger.n_slots, sizeof(*larger.slots));
	for (size_t i = 0; i < intern->n_slots; i++) {
		if (intern->slots[i])
			*find_slot(&larger, intern->slots[i]) = intern->slots[i];
	}
	free(intern->slots);
	*intern = larger;
}

const char *torsh_intern(struct intern *intern, const char *text)
{
	char **slot;

	if (!text)
		return NULL;
	if (intern->n * 2 >= intern->n_slots)
		grow_slots(intern);
	slot = find_slot(intern, text);
	if (!*slot) {
		*slot = torsh_need(strdup(text));
		intern->n++;
	}
	return *slot;
}

void torsh_intern_free(struct intern *intern)
{
	for (size_t i = 0; i < intern->n_slots; i++)
		free(intern->slots[i]);
	free(intern->slots);
	*intern = (struct intern){0};
}
