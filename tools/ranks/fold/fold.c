/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ranks/fold/fold.h"

#include <stdlib.h>
#include <xxhash.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

enum how { HOW_SUM, HOW_MIN, HOW_MAX };

static const struct table_form {
	size_t n;
	enum how how[FOLD_COLUMNS_MAX];
} forms[N_FOLD_TABLES] = {
#define COLUMN(NAME, name, how) HOW_##how,
#define TABLE(NAME) [FOLD_##NAME] = {N_FOLD_##NAME, {FOLD_COLUMNS_OF_##NAME(COLUMN)}},
	FOLD_TABLES(TABLE)
#undef TABLE
#undef COLUMN
};

size_t torsh_fold_columns(enum fold_table_id table)
{
	return forms[table].n;
}

struct fold *torsh_fold_create(void)
{
	struct fold *fold = torsh_need(calloc(1, sizeof(*fold)));

	torsh_fold_text(fold, "");
	fold->nodes = torsh_array_reserve(NULL, 0, &fold->nodes_room, sizeof(*fold->nodes));
	fold->n_nodes = 1;
	for (size_t i = 0; i < N_FOLD_TABLES; i++)
		torsh_key_index_create(&fold->tables[i].index);
	return fold;
}

void torsh_fold_destroy(struct fold *fold)
{
	if (!fold)
		return;
	for (size_t i = 0; i < N_FOLD_TABLES; i++) {
		free(fold->tables[i].rows);
		torsh_key_index_destroy(&fold->tables[i].index);
	}
	torsh_hash_map_free(&fold->text_of);
	torsh_hash_map_free(&fold->node_of);
	free(fold->texts);
	free(fold->nodes);
	free(fold);
}

uint32_t torsh_fold_text(struct fold *fold, const char *text)
{
	const struct hash_entry *entry =
		torsh_hash_map_put_text(&fold->text_of, text ? text : "", fold->n_texts);

	if (entry->value == fold->n_texts) {
		fold->texts = torsh_array_reserve(fold->texts, fold->n_texts, &fold->texts_room,
						  sizeof(*fold->texts));
		fold->texts[fold->n_texts++] = entry->key;
	}
	return (uint32_t)entry->value;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static uint64_t hash_node(const struct fold *fold, const struct fold_node *node)
{
	const uint32_t texts[] = {node->function, node->file, node->build_id};
	uint64_t hash = XXH64(&node->kind, sizeof(node->kind), fold->nodes[node->parent].hash);

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		hash = XXH64(fold->texts[texts[i]], strlen(fold->texts[texts[i]]) + 1, hash);
	return hash;
}

/* The first five members of *node are set. */
static uint32_t put_node(struct fold *fold, struct fold_node *node)
{
	const uint32_t key[] = {node->parent, node->kind, node->function, node->file,
				node->build_id};
	const struct hash_entry *entry =
		torsh_hash_map_put(&fold->node_of, key, sizeof(key), fold->n_nodes);

	if (entry->value == fold->n_nodes) {
		fold->nodes = torsh_array_reserve(fold->nodes, fold->n_nodes, &fold->nodes_room,
						  sizeof(*fold->nodes));
		node->hash = hash_node(fold, node);
		fold->nodes[fold->n_nodes++] = *node;
	}
	return (uint32_t)entry->value;
}

uint32_t torsh_fold_node(struct fold *fold, uint32_t parent, const struct fold_key *key)
{
	struct fold_node node = {.parent = parent,
				 .kind = key->kind,
				 .function = torsh_fold_text(fold, key->function),
				 .file = torsh_fold_text(fold, key->file),
				 .build_id = torsh_fold_text(fold, key->build_id)};

	return put_node(fold, &node);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void combine(const struct table_form *form, uint64_t *values, const uint64_t *more)
{
	for (size_t i = 0; i < form->n; i++) {
		if (form->how[i] == HOW_SUM)
			values[i] += more[i];
		else if ((form->how[i] == HOW_MIN) == (more[i] < values[i]))
			values[i] = more[i];
	}
}

void torsh_fold_add(struct fold *fold, enum fold_table_id id, uint32_t node, uint32_t sub,
		    const uint64_t *values)
{
	struct fold_table *table = &fold->tables[id];
	uint64_t key = ((uint64_t)node << 32 | sub) + 1;
	struct key_slot *slot = torsh_key_index_find(&table->index, key);
	struct fold_row *row;

	if (slot->key) {
		combine(&forms[id], table->rows[slot->number].values, values);
		return;
	}
	table->rows =
		torsh_array_reserve(table->rows, table->n, &table->n_room, sizeof(*table->rows));
	row = &table->rows[table->n];
	*row = (struct fold_row){.node = node, .sub = sub};
	memcpy(row->values, values, forms[id].n * sizeof(*values));
	torsh_key_index_fill(&table->index, slot, key, (uint32_t)table->n++);
}

uint32_t torsh_fold_step_sub(const struct fold *fold, size_t step)
{
	return step == SIZE_MAX ? 0 : 1 + (uint32_t)(step >> fold->shift);
}

static bool has_steps(enum fold_table_id table)
{
	return table == FOLD_SPANS || table == FOLD_MEMORY;
}

/* Returns the sub for buckets that are 2^by times as wide. */
static uint32_t widen_sub(uint32_t sub, uint32_t by)
{
	if (!sub)
		return 0;
	return 1 + (by < 32 ? (sub - 1) >> by : 0);
}

/* Empty a table; returns its rows, which the caller frees. */
static struct fold_row *take_rows(struct fold_table *table, size_t *n)
{
	struct fold_row *rows = table->rows;

	*n = table->n;
	torsh_key_index_destroy(&table->index);
	*table = (struct fold_table){0};
	torsh_key_index_create(&table->index);
	return rows;
}

void torsh_fold_widen(struct fold *fold, uint32_t shift)
{
	uint32_t by = shift - fold->shift;

	if (shift <= fold->shift)
		return;
	for (size_t id = 0; id < N_FOLD_TABLES; id++) {
		struct fold_row *rows;
		size_t n;

		if (!has_steps(id))
			continue;
		rows = take_rows(&fold->tables[id], &n);
		for (size_t i = 0; i < n; i++)
			torsh_fold_add(fold, id, rows[i].node, widen_sub(rows[i].sub, by),
				       rows[i].values);
		free(rows);
	}
	fold->shift = shift;
}

/* ---- merge ----------------------------------------------------------------------------------- */

/* Returns by number of a node of `from` its number in `to`; the caller frees it. */
static uint32_t *map_nodes(struct fold *to, const struct fold *from)
{
	uint32_t *texts = torsh_need_items(NULL, 0, from->n_texts, sizeof(*texts));
	uint32_t *nodes = torsh_need_items(NULL, 0, from->n_nodes, sizeof(*nodes));

	for (size_t i = 0; i < from->n_texts; i++)
		texts[i] = torsh_fold_text(to, from->texts[i]);
	for (size_t i = 1; i < from->n_nodes; i++) {
		const struct fold_node *node = &from->nodes[i];
		struct fold_node mapped = {.parent = nodes[node->parent],
					   .kind = node->kind,
					   .function = texts[node->function],
					   .file = texts[node->file],
					   .build_id = texts[node->build_id]};

		nodes[i] = put_node(to, &mapped);
	}
	free(texts);
	return nodes;
}

void torsh_fold_merge(struct fold *to, const struct fold *from)
{
	uint32_t *nodes = map_nodes(to, from), by;

	torsh_fold_widen(to, from->shift);
	by = to->shift - from->shift;
	for (size_t id = 0; id < N_FOLD_TABLES; id++) {
		const struct fold_table *table = &from->tables[id];

		for (size_t i = 0; i < table->n; i++)
			torsh_fold_add(to, id, nodes[table->rows[i].node],
				       has_steps(id) ? widen_sub(table->rows[i].sub, by)
						     : table->rows[i].sub,
				       table->rows[i].values);
	}
	free(nodes);
}
