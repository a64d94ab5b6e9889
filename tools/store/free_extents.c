/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/store/free_extents.h"

#include <stdlib.h>
#include <string.h>

#define PLACE_MOST (UINT64_C(64) << 20) /* so much is one chunk at most */

static int reserve_one(struct place **items, uint32_t n, uint32_t *capacity)
{
	struct place *larger;

	if (n < *capacity)
		return 0;
	larger = realloc(*items, (n * 2 + 8) * sizeof(*larger));
	if (!larger)
		return -1;
	*items = larger;
	*capacity = n * 2 + 8;
	return 0;
}

void torsh_free_extents_destroy(struct free_extents *places)
{
	free(places->free);
	free(places->resting);
	*places = (struct free_extents){0};
}

void torsh_free_extents_give_back(struct free_extents *places, struct place place)
{
	if (place.n_bytes &&
	    !reserve_one(&places->resting, places->n_resting, &places->resting_capacity))
		places->resting[places->n_resting++] = place;
}

static void drop_free(struct free_extents *places, uint32_t i)
{
	memmove(&places->free[i], &places->free[i + 1],
		(places->n_free - i - 1) * sizeof(places->free[0]));
	places->n_free--;
}

/*
 * Returns its number among the free ones, joined with neighbours; UINT32_MAX: there is no memory.
 */
static uint32_t add_free(struct free_extents *places, struct place place)
{
	uint32_t i = 0;

	while (i < places->n_free && places->free[i].offset < place.offset)
		i++;
	if (i < places->n_free && place.offset + place.n_bytes == places->free[i].offset &&
	    place.n_bytes + places->free[i].n_bytes <= PLACE_MOST) {
		place.n_bytes += places->free[i].n_bytes;
		drop_free(places, i);
	}
	if (i && places->free[i - 1].offset + places->free[i - 1].n_bytes == place.offset &&
	    place.n_bytes + places->free[i - 1].n_bytes <= PLACE_MOST) {
		places->free[i - 1].n_bytes += place.n_bytes;
		return i - 1;
	}
	if (reserve_one(&places->free, places->n_free, &places->free_capacity))
		return UINT32_MAX;
	memmove(&places->free[i + 1], &places->free[i], (places->n_free - i) * sizeof(place));
	places->free[i] = place;
	places->n_free++;
	return i;
}

void torsh_free_extents_settle(struct free_extents *places,
			       int (*write_free)(void *context, struct place place), void *context)
{
	for (uint32_t k = 0; k < places->n_resting; k++) {
		uint32_t i = add_free(places, places->resting[k]);

		if (i != UINT32_MAX && write_free(context, places->free[i]))
			drop_free(places, i);
	}
	places->n_resting = 0;
}

struct place torsh_free_extents_take(struct free_extents *places, uint64_t n_bytes,
				     uint64_t n_rest_least)
{
	for (uint32_t i = 0; i < places->n_free; i++) {
		struct place *found = &places->free[i], whole = *found;

		if (found->n_bytes != n_bytes && found->n_bytes < n_bytes + n_rest_least)
			continue;
		found->offset += n_bytes;
		found->n_bytes -= n_bytes;
		if (!found->n_bytes)
			drop_free(places, i);
		return whole;
	}
	return (struct place){0};
}
