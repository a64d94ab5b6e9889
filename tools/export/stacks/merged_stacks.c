/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/export/stacks/merged_stacks.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/memory/leaks/kept_imports.h"

#define LEAST_PART 1000 /* 1 / this of the total weight: smaller ones are merged */

enum { LABEL_NONE, LABEL_SMALL, LABEL_IMPORTS }; /* labels of imports follow */

/* A place with a label, with the sums of its stacks' weights. */
struct labelled_place {
	struct stack_place at;
	struct export_value values[N_EXPORT_WEIGHTS];
};

struct merger {
	struct merged_stacks *merged;
	const struct weighed_stacks *stacks;
	const struct recorded_process *process;
	const struct export_value *totals;
	struct labelled_place *items;
	size_t n, n_room;
	struct hash_map by_place;
	struct hash_map by_package; /* labels of imports, by package */
	uint32_t *item_of; /* by number of a stack: 1 + its labelled place; 0: none */
};

static void add_usage(struct export_value *to, const struct usage_at *usage)
{
	to->blocks += usage->blocks;
	to->bytes += usage->bytes;
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

/* Put a stack at a place that has a label. */
static void put_labelled(struct merger *merger, size_t number, struct stack_place at)
{
	size_t item = torsh_hash_map_put(&merger->by_place, &at, sizeof(at), merger->n)->value;

	if (item == merger->n) {
		merger->items = torsh_array_reserve(merger->items, merger->n, &merger->n_room,
						    sizeof(*merger->items));
		merger->items[merger->n++] = (struct labelled_place){.at = at};
	}
	merger->item_of[number] = (uint32_t)item + 1;
}

/* Labels of the imports of one process, LABEL_NONE: not looked up. */
struct import_labels {
	struct address_kinds *kinds;
	uint32_t *by_address; /* with the package's name */
	struct sparse_array by_stack; /* uint32_t, of the import: of any stack that has a name */
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

/* Find the import of each stack; the caller frees the list. */
static struct kept_import_stack *find_imports(struct merger *merger, struct import_labels *labels)
{
	const struct weighed_stacks *stacks = merger->stacks;
	struct kept_import_stack *imports = torsh_need_items(NULL, 0, stacks->n, sizeof(*imports));
	struct import_runs runs;
	struct import_finder finder;

	torsh_import_runs_find(&runs, labels->kinds);
	torsh_import_finder_start(&finder, labels->kinds, &runs);
	for (size_t i = 0; i < stacks->n; i++) {
		uint32_t *label;

		imports[i] = torsh_kept_import_of(&finder, stacks->items[i]);
		if (!imports[i].stack)
			continue;
		/* The code of a package is read before a frame of it exists. */
		label = torsh_sparse_array_at(&labels->by_stack, imports[i].stack);
		if (!*label)
			*label = label_named(merger, labels, imports[i].named);
	}
	torsh_import_finder_end(&finder);
	torsh_import_runs_end(&runs);
	return imports;
}

/* Returns the place of an import. */
static struct stack_place place_import(struct merger *merger, struct import_labels *labels,
				       const struct kept_import_stack *import)
{
	uint32_t label = label_named(merger, labels, import->named);
	const uint32_t *known = torsh_sparse_array_find(&labels->by_stack, import->stack);

	if (!label && known)
		label = *known;
	return (struct stack_place){
		.stack = merger->process->tables->stacks[import->stack].parent,
		.label = label ? label : label_import(merger, ""),
	};
}

/* Place stacks by import, and others where they are. */
static void merge_imports(struct merger *merger, struct symbols *symbols)
{
	const struct weighed_stacks *stacks = merger->stacks;
	struct kept_import_stack *imports;
	struct address_kinds kinds;
	struct import_labels labels = {
		.kinds = &kinds,
		.by_address = torsh_need_items(NULL, 0, merger->process->tables->n_addresses + 1,
					       sizeof(uint32_t)),
	};

	torsh_sparse_array_create(&labels.by_stack, sizeof(uint32_t));
	torsh_address_kinds_start(&kinds, merger->process, symbols);
	imports = find_imports(merger, &labels);
	for (size_t i = 0; i < stacks->n; i++) {
		struct stack_place *at = &merger->merged->places[i];
		uint32_t stack = stacks->items[i];

		/* Of a damaged file a part of the stacks can be missing. */
		*at = (struct stack_place){
			.stack = stack < merger->process->tables->n_stacks ? stack : 0};
		if (!imports[i].stack)
			continue;
		*at = place_import(merger, &labels, &imports[i]);
		put_labelled(merger, i, *at);
	}
	torsh_address_kinds_end(&kinds);
	free(imports);
	free(labels.by_address);
	torsh_sparse_array_destroy(&labels.by_stack);
}

static bool is_large(uint64_t bytes, uint64_t total)
{
	return bytes && bytes >= (total + LEAST_PART - 1) / LEAST_PART;
}

/* What a stack and its callees have of a weight. */
struct subtree {
	uint64_t bytes : 63;
	uint64_t is_large : 1; /* of this weight or of one before */
};

static struct subtree *subtree_of(struct sparse_array *subtrees, size_t stack)
{
	return torsh_sparse_array_at(subtrees, stack);
}

/* Mark the stacks that have enough of a weight, with their callees, beside those marked before. */
static void mark_large(const struct merger *merger, enum export_weight weight,
		       struct sparse_array *subtrees)
{
	const struct recorded_process *process = merger->process;
	uint64_t total = merger->totals[weight].bytes;
	struct usage_at at = {0};
	struct subtree *subtree;

	if (!merger->stacks->weights[weight].n_packed)
		return;
	for (size_t i = 0; (subtree = torsh_sparse_array_next(subtrees, &i)); i++)
		subtree->bytes = 0;
	while (torsh_usage_list_next(&merger->stacks->weights[weight], &at))
		subtree_of(subtrees, merger->merged->places[at.number].stack)->bytes += at.bytes;
	/* A parent's number is lower than its children's. */
	for (size_t i = process->tables->n_stacks; i-- > 1;) {
		subtree = torsh_sparse_array_find(subtrees, i);
		if (!subtree || !subtree->bytes)
			continue;
		if (is_large(subtree->bytes, total))
			subtree->is_large = 1;
		subtree_of(subtrees, process->tables->stacks[i].parent)->bytes += subtree->bytes;
	}
}

/* Add up the weights of labelled places. */
static void sum_labelled(const struct merger *merger)
{
	for (unsigned i = 0; i < N_EXPORT_WEIGHTS; i++) {
		struct usage_at at = {0};

		while (torsh_usage_list_next(&merger->stacks->weights[i], &at)) {
			uint32_t item = merger->item_of[at.number];

			if (item)
				add_usage(&merger->items[item - 1].values[i], &at);
		}
	}
}

static bool is_large_place(const struct merger *merger, const struct labelled_place *item)
{
	for (unsigned i = 0; i < N_EXPORT_WEIGHTS; i++) {
		if (is_large(item->values[i].bytes, merger->totals[i].bytes))
			return true;
	}
	return false;
}

static bool is_large_stack(const struct sparse_array *subtrees, uint32_t stack)
{
	const struct subtree *subtree = torsh_sparse_array_find(subtrees, stack);

	return subtree && subtree->is_large;
}

/* Move small stacks to their innermost large ancestor. */
static void merge_small(struct merger *merger)
{
	struct sparse_array subtrees;

	sum_labelled(merger);
	torsh_sparse_array_create(&subtrees, sizeof(struct subtree));
	for (unsigned weight = 0; weight < N_EXPORT_WEIGHTS; weight++)
		mark_large(merger, weight, &subtrees);
	for (size_t i = 0; i < merger->stacks->n; i++) {
		struct stack_place *at = &merger->merged->places[i];
		uint32_t item = merger->item_of[i];

		if (item ? is_large_place(merger, &merger->items[item - 1])
			 : is_large_stack(&subtrees, at->stack))
			continue;
		at->label = LABEL_SMALL;
		while (at->stack && !is_large_stack(&subtrees, at->stack))
			at->stack = merger->process->tables->stacks[at->stack].parent;
	}
	torsh_sparse_array_destroy(&subtrees);
}

void torsh_stacks_merge(struct merged_stacks *merged, const struct weighed_stacks *stacks,
			const struct export_value totals[N_EXPORT_WEIGHTS], struct symbols *symbols)
{
	struct merger merger = {
		.merged = merged,
		.stacks = stacks,
		.process = stacks->process,
		.totals = totals,
		.item_of = torsh_need_items(NULL, 0, stacks->n, sizeof(*merger.item_of)),
	};

	*merged = (struct merged_stacks){
		.places = torsh_need_items(NULL, 0, stacks->n, sizeof(*merged->places))};
	add_label(merged, NULL);
	add_label(merged, torsh_need_text("(below 0.1 %%)"));
	merge_imports(&merger, symbols);
	merge_small(&merger);
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

/* Returns the number of the sample with that key and place, added if it is new. */
static size_t put_sample(struct folded_samples *folded, const struct recorded_process *process,
			 const struct frames_key *key, struct stack_place at)
{
	const struct hash_entry *entry = torsh_hash_map_put(
		&folded->by_frames, key->items, key->n * sizeof(*key->items), folded->n);

	if (entry->value < folded->n)
		return entry->value;
	folded->items = torsh_array_reserve(folded->items, folded->n, &folded->n_room,
					    sizeof(*folded->items));
	folded->items[folded->n] = (struct export_sample){
		.process = process,
		.stack = at.stack,
		.addresses = (const uint32_t *)(const void *)entry->key + 1,
		.n_addresses = key->n - 1,
		.merged = folded->merged.labels[at.label],
	};
	return folded->n++;
}

/* Find the sample of each stack. */
static void find_samples(struct folded_samples *folded, const struct weighed_stacks *stacks,
			 struct symbols *symbols, uint32_t *sample_of)
{
	struct frames_key key = {0};
	struct address_kinds kinds;

	torsh_address_kinds_start(&kinds, stacks->process, symbols);
	for (size_t i = 0; i < stacks->n; i++) {
		make_key(&key, folded->merged.places[i], &kinds);
		sample_of[i] = (uint32_t)put_sample(folded, stacks->process, &key,
						    folded->merged.places[i]);
	}
	torsh_address_kinds_end(&kinds);
	free(key.items);
}

void torsh_samples_fold(struct folded_samples *folded, const struct weighed_stacks *stacks,
			const struct export_value totals[N_EXPORT_WEIGHTS], struct symbols *symbols)
{
	uint32_t *sample_of;

	*folded = (struct folded_samples){0};
	if (!stacks->n)
		return;
	torsh_stacks_merge(&folded->merged, stacks, totals, symbols);
	sample_of = torsh_need_items(NULL, 0, stacks->n, sizeof(*sample_of));
	find_samples(folded, stacks, symbols, sample_of);
	for (unsigned i = 0; i < N_EXPORT_WEIGHTS; i++) {
		struct usage_at at = {0};

		while (torsh_usage_list_next(&stacks->weights[i], &at))
			add_usage(&folded->items[sample_of[at.number]].values[i], &at);
	}
	free(sample_of);
}

void torsh_samples_fold_free(struct folded_samples *folded)
{
	free(folded->items);
	torsh_hash_map_free(&folded->by_frames);
	torsh_stacks_merge_free(&folded->merged);
	*folded = (struct folded_samples){0};
}
