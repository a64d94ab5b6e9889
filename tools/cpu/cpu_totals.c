/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/cpu/cpu_totals.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"

const char *const torsh_cpu_group_names[N_CPU_GROUPS] = {"function", "line",   "library", "thread",
							 "operator", "module", "phase",	  "step"};

struct key {
	uint64_t name, file, library, number;
};

struct slot {
	size_t last; /* stack + 1 that has counted it already: recursion counts once */
	uint64_t best_ns; /* of the line that the function shows */
};

struct maker {
	struct cpu_totals *totals;
	const struct cpu_samples *samples;
	struct symbols *symbols;
	enum cpu_group group;
	struct hash_map index, lines;
	struct slot *slots; /* by total */
	size_t slots_room;
};

static struct cpu_total *total_of(struct maker *maker, const struct cpu_total *like)
{
	struct cpu_totals *totals = maker->totals;
	struct key key = {
		.name = (uintptr_t)like->name,
		.file = (uintptr_t)like->file,
		.library = (uintptr_t)like->library,
		.number = (uintptr_t)like->process ^ (uint64_t)like->thread << 48,
	};
	size_t i;

	key.number ^= maker->group == CPU_BY_STEP ? like->step * 1000003 : (uint64_t)like->line;
	i = torsh_hash_map_put(&maker->index, &key, sizeof(key), totals->n)->value;
	if (i == totals->n) {
		totals->items = torsh_array_reserve(totals->items, totals->n, &totals->n_room,
						    sizeof(*totals->items));
		maker->slots = torsh_array_reserve(maker->slots, totals->n, &maker->slots_room,
						   sizeof(*maker->slots));
		totals->items[totals->n] = *like;
		maker->slots[totals->n++] = (struct slot){0};
	}
	return &totals->items[i];
}

static void add_self(struct cpu_total *total, const struct cpu_row *row)
{
	total->self_ns += row->ns;
	total->self_n += row->n;
}

static void add_total(struct cpu_total *total, const struct cpu_row *row)
{
	total->total_ns += row->ns;
	total->total_n += row->n;
}

/* A function shows the line with most of its own time, else of all. */
static void choose_line(struct maker *maker, struct cpu_total *total, const struct frame *frame,
			const struct cpu_row *row, bool is_self)
{
	struct slot *slot = &maker->slots[total - maker->totals->items];
	const struct key key = {.name = (uintptr_t)frame->function,
				.file = (uintptr_t)frame->file,
				.library = is_self,
				.number = (uint64_t)frame->line};
	struct hash_entry *entry =
		(struct hash_entry *)torsh_hash_map_put(&maker->lines, &key, sizeof(key), 0);
	/* Own time outweighs time in what a line calls. */
	uint64_t ns = entry->value += row->ns;

	ns = is_self ? ns | UINT64_C(1) << 63 : ns;
	if (frame->line && ns > slot->best_ns) {
		slot->best_ns = ns;
		total->line = frame->line;
	}
}

static struct cpu_total total_like(const struct maker *maker, const struct frame *frame)
{
	struct cpu_total like = {.is_python = frame->is_python};

	switch (maker->group) {
	case CPU_BY_LIBRARY:
		like.name = frame->is_python ? "Python" : frame->module;
		return like;
	case CPU_BY_LINE:
		like.line = frame->line;
		break;
	default:
		break;
	}
	like.name = frame->function;
	like.file = frame->file;
	like.library = frame->module;
	return like;
}

static void add_frames(struct maker *maker, const struct cpu_row *row, size_t number,
		       const struct frame *const *frames, size_t n)
{
	bool has_self = false;

	for (size_t i = 0; i < n; i++) {
		struct cpu_total like, *total;

		if (frames[i]->cut)
			continue;
		like = total_like(maker, frames[i]);
		total = total_of(maker, &like);
		if (!has_self)
			add_self(total, row);
		if (maker->group == CPU_BY_FUNCTION)
			choose_line(maker, total, frames[i], row, !has_self);
		has_self = true;
		if (maker->slots[total - maker->totals->items].last == number + 1)
			continue;
		maker->slots[total - maker->totals->items].last = number + 1;
		add_total(total, row);
	}
}

/* Without frames, also where the view leaves none: a total without a name. */
static void add_stack(struct maker *maker, const struct cpu_row *row, size_t number,
		      enum stack_view view)
{
	const struct cpu_total unknown = {0};
	struct cpu_total *total;
	size_t n = 0, n_shown = 0;
	const struct frame **frames =
		row->stack ? torsh_stack_frames(row->process, row->stack, maker->symbols, view, &n)
			   : NULL;

	for (size_t i = 0; i < n; i++)
		n_shown += !frames[i]->cut;
	if (n_shown) {
		add_frames(maker, row, number, frames, n);
	} else {
		total = total_of(maker, &unknown);
		add_self(total, row);
		add_total(total, row);
	}
	free(frames);
}

static void add_place(struct maker *maker, const struct cpu_row *row)
{
	struct cpu_total like = {0}, *total;

	switch (maker->group) {
	case CPU_BY_THREAD:
		like.process = row->process;
		like.thread = row->thread;
		if (row->thread < row->process->n_threads)
			like.name = row->process->threads[row->thread].name;
		break;
	case CPU_BY_OPERATOR:
		like.name = row->op;
		break;
	case CPU_BY_MODULE:
		like.name = row->module;
		break;
	case CPU_BY_PHASE:
		like.name = row->phase < 0 ? NULL : torsh_phase_names[row->phase];
		break;
	default:
		if (!row->has_step)
			return;
		like.process = row->process;
		like.step = row->step;
	}
	total = total_of(maker, &like);
	add_self(total, row);
	add_total(total, row);
}

static int compare_texts(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int compare_totals(const void *left, const void *right)
{
	const struct cpu_total *a = left, *b = right;
	int by = (a->self_ns < b->self_ns) - (a->self_ns > b->self_ns);

	by = by ? by : (a->total_ns < b->total_ns) - (a->total_ns > b->total_ns);
	by = by ? by : compare_texts(a->name, b->name);
	by = by ? by : compare_texts(a->file, b->file);
	by = by ? by : a->line - b->line;
	return by ? by : (a->thread > b->thread) - (a->thread < b->thread);
}

static int compare_steps(const void *left, const void *right)
{
	const struct cpu_total *a = left, *b = right;
	uint32_t x = a->process->number, y = b->process->number;

	return x != y ? (x > y) - (x < y) : (a->step > b->step) - (a->step < b->step);
}

void torsh_cpu_totals_make(struct cpu_totals *totals, const struct cpu_samples *samples,
			   enum cpu_group group, struct symbols *symbols, enum stack_view view)
{
	struct maker maker = {
		.totals = totals, .samples = samples, .symbols = symbols, .group = group};

	*totals = (struct cpu_totals){0};
	for (size_t i = 0; i < samples->n; i++) {
		if (group <= CPU_BY_LIBRARY)
			add_stack(&maker, &samples->rows[i], i, view);
		else
			add_place(&maker, &samples->rows[i]);
	}
	if (totals->n)
		qsort(totals->items, totals->n, sizeof(*totals->items),
		      group == CPU_BY_STEP ? compare_steps : compare_totals);
	torsh_hash_map_free(&maker.index);
	torsh_hash_map_free(&maker.lines);
	free(maker.slots);
}

void torsh_cpu_totals_free(struct cpu_totals *totals)
{
	free(totals->items);
	*totals = (struct cpu_totals){0};
}
