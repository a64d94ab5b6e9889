/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The canonical order of a fold: it depends on the contents only. */
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/ranks/fold/fold.h"

/* Sorting has no argument for what is sorted. */
static _Thread_local const struct fold *sorted;

static int compare_numbers(uint32_t a, uint32_t b)
{
	return (a > b) - (a < b);
}

static int compare_texts(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return strcmp(sorted->texts[*x], sorted->texts[*y]);
}

static int compare_rows(const void *a, const void *b)
{
	const struct fold_row *x = a, *y = b;
	int rc = compare_numbers(x->node, y->node);

	return rc ? rc : compare_numbers(x->sub, y->sub);
}

/* Returns n numbers from 0 on in order; the caller frees them. */
static uint32_t *sort_numbers(const struct fold *fold, size_t n,
			      int (*compare)(const void *, const void *))
{
	uint32_t *order = torsh_need_items(NULL, 0, n, sizeof(*order));

	for (size_t i = 0; i < n; i++)
		order[i] = (uint32_t)i;
	sorted = fold;
	qsort(order, n, sizeof(*order), compare);
	return order;
}

/* ---- which texts and nodes are in use -------------------------------------------------------- */

/* Returns by node whether it or one below it has a row; the caller frees it. */
static bool *find_used_nodes(const struct fold *fold)
{
	bool *is_used = torsh_need_items(NULL, 0, fold->n_nodes, sizeof(*is_used));

	is_used[0] = true;
	for (size_t id = 0; id < N_FOLD_TABLES; id++) {
		for (size_t i = 0; i < fold->tables[id].n; i++)
			is_used[fold->tables[id].rows[i].node] = true;
	}
	for (size_t i = fold->n_nodes; i-- > 1;) {
		if (is_used[i])
			is_used[fold->nodes[i].parent] = true;
	}
	return is_used;
}

/* Of nodes in a canonical order of texts: by depth, then parent, then key. */
static int compare_nodes(const void *a, const void *b)
{
	const struct fold_node *x = &sorted->nodes[*(const uint32_t *)a],
			       *y = &sorted->nodes[*(const uint32_t *)b];
	int rc = compare_numbers(x->kind, y->kind);

	if (!rc)
		rc = compare_numbers(x->function, y->function);
	if (!rc)
		rc = compare_numbers(x->file, y->file);
	return rc ? rc : compare_numbers(x->build_id, y->build_id);
}

/* ---- order ----------------------------------------------------------------------------------- */

/* Children of each node, in the order of their keys. */
struct children {
	uint32_t *first; /* by node: index in items; one more at the end */
	uint32_t *items;
};

static struct children find_children(const struct fold *fold, const bool *is_used)
{
	struct children children = {
		.first = torsh_need_items(NULL, 0, fold->n_nodes + 2, sizeof(uint32_t)),
		.items = torsh_need_items(NULL, 0, fold->n_nodes, sizeof(uint32_t)),
	};
	uint32_t *by_key = sort_numbers(fold, fold->n_nodes, compare_nodes);

	for (size_t i = 1; i < fold->n_nodes; i++)
		children.first[fold->nodes[i].parent + 2] += is_used[i];
	for (size_t i = 2; i < fold->n_nodes + 2; i++)
		children.first[i] += children.first[i - 1];
	for (size_t i = 0; i < fold->n_nodes; i++) {
		uint32_t node = by_key[i];

		if (node && is_used[node])
			children.items[children.first[fold->nodes[node].parent + 1]++] = node;
	}
	free(by_key);
	return children;
}

/* Returns the used nodes, a level after the other; the caller frees it. */
static uint32_t *order_nodes(const struct fold *fold, const bool *is_used, size_t *n)
{
	struct children children = find_children(fold, is_used);
	uint32_t *order = torsh_need_items(NULL, 0, fold->n_nodes, sizeof(*order));

	*n = 1;
	for (size_t i = 0; i < *n; i++) {
		uint32_t node = order[i];

		for (uint32_t k = children.first[node]; k < children.first[node + 1]; k++)
			order[(*n)++] = children.items[k];
	}
	free(children.first);
	free(children.items);
	return order;
}

/* ---- renumber -------------------------------------------------------------------------------- */

static void mark_texts(const struct fold *fold, const bool *is_used, bool *is_text_used)
{
	is_text_used[0] = true;
	for (size_t i = 1; i < fold->n_nodes; i++) {
		if (!is_used[i])
			continue;
		is_text_used[fold->nodes[i].function] = true;
		is_text_used[fold->nodes[i].file] = true;
		is_text_used[fold->nodes[i].build_id] = true;
	}
}

/* Sort the texts, without those that no node has. */
static void settle_texts(struct fold *fold, const bool *is_used)
{
	bool *is_text_used = torsh_need_items(NULL, 0, fold->n_texts, sizeof(*is_text_used));
	uint32_t *order = sort_numbers(fold, fold->n_texts, compare_texts);
	uint32_t *number = torsh_need_items(NULL, 0, fold->n_texts, sizeof(*number));
	struct hash_map old = fold->text_of;
	const char **texts = fold->texts;
	size_t n = fold->n_texts;

	mark_texts(fold, is_used, is_text_used);
	fold->text_of = (struct hash_map){0};
	fold->texts = NULL;
	fold->n_texts = fold->texts_room = 0;
	for (size_t i = 0; i < n; i++) {
		if (is_text_used[order[i]])
			number[order[i]] = torsh_fold_text(fold, texts[order[i]]);
	}
	for (size_t i = 1; i < fold->n_nodes; i++) {
		fold->nodes[i].function = number[fold->nodes[i].function];
		fold->nodes[i].file = number[fold->nodes[i].file];
		fold->nodes[i].build_id = number[fold->nodes[i].build_id];
	}
	torsh_hash_map_free(&old);
	free(texts);
	free(number);
	free(order);
	free(is_text_used);
}

static void index_nodes(struct fold *fold)
{
	torsh_hash_map_free(&fold->node_of);
	for (size_t i = 1; i < fold->n_nodes; i++) {
		const struct fold_node *node = &fold->nodes[i];
		const uint32_t key[] = {node->parent, node->kind, node->function, node->file,
					node->build_id};

		torsh_hash_map_put(&fold->node_of, key, sizeof(key), i);
	}
}

static void settle_rows(struct fold_table *table, const uint32_t *number)
{
	for (size_t i = 0; i < table->n; i++)
		table->rows[i].node = number[table->rows[i].node];
	if (table->n)
		qsort(table->rows, table->n, sizeof(*table->rows), compare_rows);
	torsh_key_index_destroy(&table->index);
	torsh_key_index_create(&table->index);
	for (size_t i = 0; i < table->n; i++) {
		uint64_t key = ((uint64_t)table->rows[i].node << 32 | table->rows[i].sub) + 1;

		torsh_key_index_fill(&table->index, torsh_key_index_find(&table->index, key), key,
				     (uint32_t)i);
	}
}

void torsh_fold_settle(struct fold *fold)
{
	bool *is_used = find_used_nodes(fold);
	uint32_t *number = torsh_need_items(NULL, 0, fold->n_nodes, sizeof(*number)), *order;
	struct fold_node *nodes;
	size_t n;

	settle_texts(fold, is_used);
	order = order_nodes(fold, is_used, &n);
	nodes = torsh_need_items(NULL, 0, n, sizeof(*nodes));
	for (size_t i = 0; i < n; i++) {
		number[order[i]] = (uint32_t)i;
		nodes[i] = fold->nodes[order[i]];
		nodes[i].parent = number[nodes[i].parent];
	}
	free(fold->nodes);
	fold->nodes = nodes;
	fold->n_nodes = fold->nodes_room = n;
	index_nodes(fold);
	for (size_t id = 0; id < N_FOLD_TABLES; id++)
		settle_rows(&fold->tables[id], number);
	free(order);
	free(number);
	free(is_used);
}
