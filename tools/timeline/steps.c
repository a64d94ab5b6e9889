/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/steps.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/timeline/window.h"

const char *const torsh_step_rule_names[N_STEP_RULES] = {
#define RULE(NAME, name, text) #name,
	STEP_RULES
#undef RULE
};

const char *const torsh_step_rule_texts[N_STEP_RULES] = {
#define RULE(NAME, name, text) text,
	STEP_RULES
#undef RULE
};

const char *const torsh_step_kind_names[N_STEP_KINDS] = {
#define KIND(NAME, name) [STEP_##NAME] = #name,
	STEP_KINDS
#undef KIND
};

struct step *torsh_steps_add(struct steps *steps, uint64_t number, uint64_t start_ns,
			     uint64_t end_ns)
{
	struct step step = {.number = number, .start_ns = start_ns, .end_ns = end_ns};

	/* Spans of several threads may overlap: the first counts. */
	if (steps->n && start_ns < steps->items[steps->n - 1].end_ns)
		step.start_ns = steps->items[steps->n - 1].end_ns;
	if (step.end_ns < step.start_ns)
		return NULL;
	steps->items = torsh_array_reserve(steps->items, steps->n, &steps->n_room, sizeof(step));
	steps->items[steps->n] = step;
	return &steps->items[steps->n++];
}

/* Keep the steps that is_kept has true for, and their slices. */
static void keep(struct steps *steps, const bool *is_kept)
{
	size_t *moved = torsh_need_items(NULL, 0, steps->n, sizeof(*moved)), n = 0, n_slices = 0;

	for (size_t i = 0; i < steps->n; i++) {
		moved[i] = n;
		if (is_kept[i])
			steps->items[n++] = steps->items[i];
	}
	for (size_t i = 0; i < steps->n_slices; i++) {
		struct step_slice slice = steps->slices[i];

		if (!is_kept[slice.step])
			continue;
		slice.step = moved[slice.step];
		steps->slices[n_slices++] = slice;
	}
	steps->n = n;
	steps->n_slices = n_slices;
	free(moved);
}

void torsh_steps_choose(struct steps *steps, const struct steps_choice *choice)
{
	bool *is_kept;
	size_t n_passed = 0;

	if (!choice->is_some)
		return;
	is_kept = torsh_need_items(NULL, 0, steps->n, sizeof(*is_kept));
	for (size_t i = 0; i < steps->n; i++) {
		const struct step *step = &steps->items[i];

		is_kept[i] = step->number >= choice->first && step->number <= choice->last &&
			     n_passed++ >= choice->n_skipped;
	}
	keep(steps, is_kept);
	free(is_kept);
	steps->is_restricted = true;
}

size_t torsh_steps_after(const struct step *steps, size_t n, uint64_t at_ns)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (steps[middle].end_ns <= at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

size_t torsh_steps_find(const struct step *steps, size_t n, uint64_t at_ns)
{
	size_t i = torsh_steps_after(steps, n, at_ns);

	return i < n && steps[i].start_ns <= at_ns ? i : STEP_NONE;
}

/* Returns the overlapping step that contains the time and began last, or STEP_NONE. */
static size_t find_last(const struct steps *steps, uint64_t at_ns)
{
	size_t low = 0, high = steps->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (steps->items[middle].start_ns <= at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	while (low-- && steps->items[low].start_ns + steps->longest_ns >= at_ns) {
		if (steps->items[low].end_ns > at_ns)
			return low;
	}
	return STEP_NONE;
}

size_t torsh_steps_at(const struct steps *steps, uint64_t at_ns)
{
	if (steps->slices)
		return find_last(steps, at_ns);
	return torsh_steps_find(steps->items, steps->n, at_ns);
}

size_t torsh_steps_of(const struct steps *steps, uint64_t at_ns, uint32_t thread)
{
	size_t low = 0, high = steps->n_slices;

	if (!steps->slices)
		return torsh_steps_at(steps, at_ns);
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct step_slice *slice = &steps->slices[middle];

		if (slice->thread < thread || (slice->thread == thread && slice->end_ns <= at_ns))
			low = middle + 1;
		else
			high = middle;
	}
	if (low == steps->n_slices || steps->slices[low].thread != thread ||
	    steps->slices[low].start_ns > at_ns)
		return STEP_NONE;
	return steps->slices[low].step;
}

bool torsh_steps_have(const struct steps *steps, uint64_t at_ns)
{
	if (steps->window && !torsh_window_has(steps->window, at_ns))
		return false;
	return !steps->is_restricted || torsh_steps_at(steps, at_ns) != STEP_NONE;
}

void torsh_steps_restrict(struct steps *steps, const struct time_window *window)
{
	bool *is_kept = torsh_need_items(NULL, 0, steps->n, sizeof(*is_kept));

	steps->window = window;
	for (size_t i = 0; i < steps->n; i++)
		is_kept[i] = torsh_window_has(window, steps->items[i].start_ns);
	keep(steps, is_kept);
	free(is_kept);
}

void torsh_steps_free(struct steps *steps)
{
	free(steps->items);
	free(steps->slices);
}
