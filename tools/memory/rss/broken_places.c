/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/rss/broken_places.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/symbols/stack_view.h"

/* The stack is one line; its innermost frame if functions were inlined there. */
static const struct frame *frame_of(const struct recorded_process *process, uint32_t stack,
				    struct symbols *symbols)
{
	const struct frame **frames, *frame = NULL;
	size_t n;

	if (!stack)
		return NULL;
	frames = torsh_stack_frames(process, stack, symbols, STACK_VIEW_MERGED, &n);
	if (n && !frames[0]->cut)
		frame = frames[0];
	free(frames);
	return frame;
}

static bool is_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static bool is_place(const struct frame *a, const struct frame *b)
{
	if (!a || !b)
		return a == b;
	return a->line == b->line && is_text(a->function, b->function) &&
	       is_text(a->file, b->file) && is_text(a->module, b->module) &&
	       (a->line || a->function || a->address == b->address);
}

static struct broken_place *place_of(struct broken_places *places, const struct frame *frame)
{
	for (size_t i = 0; i < places->n; i++) {
		if (is_place(places->items[i].frame, frame))
			return &places->items[i];
	}
	places->items[places->n] = (struct broken_place){.frame = frame};
	return &places->items[places->n++];
}

static int compare_places(const void *a, const void *b)
{
	const struct broken_place *x = a, *y = b;

	if (!x->frame != !y->frame)
		return x->frame ? -1 : 1;
	return (x->pages < y->pages) - (x->pages > y->pages);
}

void torsh_broken_places_make(struct broken_places *places, const struct recorded_process *process,
			      const struct recorded_account *account, struct symbols *symbols)
{
	*places = (struct broken_places){
		.items = torsh_need_items(NULL, 0, account->n_breaks + 1, sizeof(*places->items)),
	};
	for (size_t i = 0; i < account->n_breaks; i++) {
		const struct recorded_break *row = &account->breaks[i];
		struct broken_place *place =
			place_of(places, frame_of(process, row->stack, symbols));

		place->samples += row->samples;
		place->pages += row->pages;
		places->samples += row->samples;
		places->pages += row->pages;
	}
	qsort(places->items, places->n, sizeof(*places->items), compare_places);
}

void torsh_broken_places_free(struct broken_places *places)
{
	free(places->items);
	*places = (struct broken_places){0};
}

double torsh_broken_share(const struct broken_places *places, const struct broken_place *place)
{
	return places->pages ? (double)place->pages / (double)places->pages : 0;
}

double torsh_broken_error(const struct broken_places *places, const struct broken_place *place)
{
	double z = 1.96, n = (double)places->samples + z * z;
	double share = ((double)place->samples + z * z / 2) / n;

	return z * sqrt(share * (1 - share) / n);
}
