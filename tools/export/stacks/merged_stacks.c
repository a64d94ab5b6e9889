/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/export/stacks/merged_stacks.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/memory/leaks/kept_imports.h"

#define LEAST_PART 1000 /* 1 / this of the total weight: smaller ones are merged */

enum { LABEL_NONE, LABEL_SMALL, LABEL_IMPORTS }; /* labels of imports follow */

/* A stack place with the sum of its samples' weights. */
struct weighed_place {
	struct stack_place at;
	struct export_value values[N_EXPORT_WEIGHTS];
};

struct merger {
	struct merged_stacks *merged;
	const struct recorded_process *process;
	const struct export_value *totals;
	struct weighed_place *items;
	size_t n, n_room;
	struct hash_map by_place;
	struct hash_map by_package; /* labels of imports, by package */
	size_t *item_of; /* by sample: its place */
};

static void add_values(struct export_value *to, const struct export_value *from)
{
	for (unsigned i = 0; i < N_EXPORT_WEIGHTS; i++) {
		to[i].blocks += from[i].blocks;
		to[i].bytes += from[i].bytes;
	}
}

static uint32_t add_label(struct merged_stacks *merged, char *label)
{
	merged->labels = torsh_array_reserve(merged->labels, merged->n_labels, &merged->labels_room,
					     sizeof(*merged->labels));
	merged->labels[merged->n_labels] = label;
	return (uint32_t)merged->n_labels++;
}

static uint32_t label_import(struct merger *merger, const char *package)
{
	struct merged_stacks *merged = merger->merged;
	size_t label =
		torsh_hash_map_put_text(&merger->by_package, package, merged->n_labels)->value;

	if (label == merged->n_labels)
		add_label(merged, *package ? torsh_need_text("(import of %s)", package)
					   : torsh_need_text("(imports)"));
	return (uint32_t)label;
}

/* Add a sample's weights to a place. Returns the place's number. */
static size_t weigh(struct merger *merger, struct stack_place at,
		    const struct export_sample *sample)
{
	size_t number = torsh_hash_map_put(&merger->by_place, &at, sizeof(at), merger->n)->value;

	if (number == merger->n) {
		merger->items = torsh_array_reserve(merger->items, merger->n, &merger->n_room,
						    sizeof(*merger->items));
		merger->items[merger->n++] = (struct weighed_place){.at = at};
	}
	add_values(merger->items[number].values, sample->values);
	return number;
}

/* Labels of the imports of one process, LABEL_NONE: not looked up. */
struct import_labels {
	struct address_kinds *kinds;
	uint32_t *by_address; /* with the package's name */
	uint32_t *by_stack; /* of the import: of any sample that has a name */
};

/* The label of the package that an import's stack names, or LABEL_NONE. */
static uint32_t label_named(struct merger *merger, struct import_labels *labels, uint32_t named)
{
	char package[IMPORT_NAME_BYTES];

	if (!torsh_address_has_package(labels->kinds, named))
		return LABEL_NONE;
	if (!labels->by_address[named]) {
		torsh_address_package(merger->process, named, package, sizeof(package));
		labels->by_address[named] = label_import(merger, package);
	}
	return labels->by_address[named];
}

/* Count samples by import, and others by stack. */
static void merge_imports(struct merger *merger, const struct export_sample *samples, size_t n,
			  struct symbols *symbols)
{
	const struct recorded_process *process = merger->process;
	struct kept_import_stack *imports = torsh_need_items(NULL, 0, n, sizeof(*imports));
	struct address_kinds kinds;
	struct import_runs runs;
	struct import_finder finder;
	struct import_labels labels = {
		.kinds = &kinds,
		.by_address = torsh_need_items(NULL, 0, process->tables->n_addresses + 1,
					       sizeof(uint32_t)),
		.by_stack =
			torsh_need_items(NULL, 0, process->tables->n_stacks + 1, sizeof(uint32_t)),
	};

	torsh_address_kinds_start(&kinds, process, symbols);
	torsh_import_runs_find(&runs, &kinds);
	torsh_import_finder_start(&finder, &kinds, &runs);
	for (size_t i = 0; i < n; i++) {
		imports[i] = torsh_kept_import_of(&finder, samples[i].stack);
		/* The code of a package is read before a frame of it exists. */
		if (imports[i].stack && !labels.by_stack[imports[i].stack])
			labels.by_stack[imports[i].stack] =
				label_named(merger, &labels, imports[i].named);
	}
	for (size_t i = 0; i < n; i++) {
		struct stack_place at = {.stack = samples[i].stack};
		uint32_t import = imports[i].stack, label;

		if (import) {
			at.stack = process->tables->stacks[import].parent;
			label = label_named(merger, &labels, imports[i].named);
			label = label ? label : labels.by_stack[import];
			at.label = label ? label : label_import(merger, "");
		}
		merger->item_of[i] = weigh(merger, at, &samples[i]);
	}
	torsh_import_finder_end(&finder);
	torsh_import_runs_end(&runs);
	torsh_address_kinds_end(&kinds);
	free(imports);
	free(labels.by_address);
	free(labels.by_stack);
}

static bool is_large(uint64_t bytes, uint64_t total)
{
	return bytes && bytes >= (total + LEAST_PART - 1) / LEAST_PART;
}

/* Mark the stacks that have enough of some weight, with their callees. */
static bool *find_large(const struct merger *merger)
{
	const struct recorded_process *process = merger->process;
	size_t n = process->tables->n_stacks;
	bool *large = torsh_need_items(NULL, 0, n + 1, sizeof(*large));
	uint64_t *sums = torsh_need_items(NULL, 0, n + 1, sizeof(*sums));

	for (unsigned weight = 0; weight < N_EXPORT_WEIGHTS; weight++) {
		for (size_t i = 0; i < n; i++)
			sums[i] = 0;
		for (size_t i = 0; i < merger->n; i++)
			sums[merger->items[i].at.stack] += merger->items[i].values[weight].bytes;
		/* A parent's number is lower than its children's. */
		for (size_t i = n; i-- > 1;) {
			large[i] = large[i] || is_large(sums[i], merger->totals[weight].bytes);
			sums[process->tables->stacks[i].parent] += sums[i];
		}
	}
	free(sums);
	return large;
}

static bool is_large_place(const struct merger *merger, const struct weighed_place *item)
{
	for (unsigned i = 0; i < N_EXPORT_WEIGHTS; i++) {
		if (is_large(item->values[i].bytes, merger->totals[i].bytes))
			return true;
	}
	return false;
}

/* Move small stacks to their innermost large ancestor. */
static void merge_small(struct merger *merger)
{
	bool *large = find_large(merger);

	for (size_t i = 0; i < merger->n; i++) {
		struct weighed_place *item = &merger->items[i];

		if (item->at.label ? is_large_place(merger, item) : large[item->at.stack])
			continue;
		item->at.label = LABEL_SMALL;
		while (item->at.stack && !large[item->at.stack])
			item->at.stack = merger->process->tables->stacks[item->at.stack].parent;
	}
	free(large);
}

void torsh_stacks_merge(struct merged_stacks *merged, const struct export_sample *samples, size_t n,
			const struct export_value totals[N_EXPORT_WEIGHTS],
			const struct recorded_process *process, struct symbols *symbols)
{
	struct merger merger = {.merged = merged, .process = process, .totals = totals};

	*merged = (struct merged_stacks){
		.places = torsh_need_items(NULL, 0, n, sizeof(*merged->places))};
	merger.item_of = torsh_need_items(NULL, 0, n, sizeof(*merger.item_of));
	add_label(merged, NULL);
	add_label(merged, torsh_need_text("(below 0.1 %%)"));
	merge_imports(&merger, samples, n, symbols);
	merge_small(&merger);
	for (size_t i = 0; i < n; i++)
		merged->places[i] = merger.items[merger.item_of[i]].at;
	free(merger.item_of);
	free(merger.items);
	torsh_hash_map_free(&merger.by_place);
	torsh_hash_map_free(&merger.by_package);
}

void torsh_stacks_merge_free(struct merged_stacks *merged)
{
	for (size_t i = 0; i < merged->n_labels; i++)
		free(merged->labels[i]);
	free(merged->labels);
	free(merged->places);
	*merged = (struct merged_stacks){0};
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* The label and the addresses of a sample: samples with equal keys are merged. */
struct frames_key {
	uint32_t *items;
	size_t n, n_room;
};

static void add_item(struct frames_key *key, uint32_t item)
{
	key->items = torsh_array_reserve(key->items, key->n, &key->n_room, sizeof(*key->items));
	key->items[key->n++] = item;
}

static void make_key(struct frames_key *key, struct stack_place at, struct address_kinds *kinds)
{
	const struct recorded_process *process = kinds->process;
	bool is_inside = !at.label; /* only interpreter frames so far, from the innermost on */

	key->n = 0;
	add_item(key, at.label);
	for (uint32_t stack = at.stack; stack && stack < process->tables->n_stacks;
	     stack = process->tables->stacks[stack].parent) {
		uint32_t address = process->tables->stacks[stack].address;
		enum frame_kind kind = torsh_address_kind(kinds, address);
		bool is_machinery = kind == FRAME_INTERPRETER || kind == FRAME_IMPORT;

		is_inside = is_inside && is_machinery;
		if (!is_machinery || is_inside)
			add_item(key, address);
	}
}

void torsh_samples_fold(struct folded_samples *folded, const struct export_sample *samples,
			size_t n, const struct export_value totals[N_EXPORT_WEIGHTS],
			struct symbols *symbols)
{
	struct frames_key key = {0};
	struct address_kinds kinds;

	*folded = (struct folded_samples){0};
	if (!n)
		return;
	torsh_stacks_merge(&folded->merged, samples, n, totals, samples->process, symbols);
	torsh_address_kinds_start(&kinds, samples->process, symbols);
	for (size_t i = 0; i < n; i++) {
		struct stack_place at = folded->merged.places[i];
		const struct hash_entry *entry;

		make_key(&key, at, &kinds);
		entry = torsh_hash_map_put(&folded->by_frames, key.items,
					   key.n * sizeof(*key.items), folded->n);
		if (entry->value == folded->n) {
			folded->items = torsh_array_reserve(
				folded->items, folded->n, &folded->n_room, sizeof(*folded->items));
			folded->items[folded->n++] = (struct export_sample){
				.process = samples->process,
				.stack = at.stack,
				.addresses = (const uint32_t *)(const void *)entry->key + 1,
				.n_addresses = key.n - 1,
				.merged = folded->merged.labels[at.label],
			};
		}
		add_values(folded->items[entry->value].values, samples[i].values);
	}
	torsh_address_kinds_end(&kinds);
	free(key.items);
}

void torsh_samples_fold_free(struct folded_samples *folded)
{
	free(folded->items);
	torsh_hash_map_free(&folded->by_frames);
	torsh_stacks_merge_free(&folded->merged);
	*folded = (struct folded_samples){0};
}
