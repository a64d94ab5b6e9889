/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/export/html/html_tree.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

#define SHARE_MIN 2e-5f /* of each weight: smaller nodes are too narrow to draw */

static const char *const weight_names[N_HTML_WEIGHTS] = {
#define WEIGHT(NAME, name) #name,
	HTML_WEIGHTS
#undef WEIGHT
};

void torsh_html_tree_create(struct html_tree *tree)
{
	*tree = (struct html_tree){0};
	torsh_key_index_create(&tree->children);
	tree->nodes = torsh_array_reserve(NULL, 0, &tree->n_room, sizeof(*tree->nodes));
	tree->n = 1;
}

void torsh_html_tree_free(struct html_tree *tree)
{
	torsh_key_index_destroy(&tree->children);
	free(tree->nodes);
	free(tree->values);
}

void torsh_html_tree_end_growth(struct html_tree *tree)
{
	torsh_key_index_destroy(&tree->children);
}

uint32_t torsh_html_tree_child(struct html_tree *tree, uint32_t parent, uint32_t frame)
{
	uint64_t key = ((uint64_t)parent << 32 | frame) + 1; /* 0 is an empty slot */
	struct key_slot *slot = torsh_key_index_find(&tree->children, key);
	uint32_t number = (uint32_t)tree->n;

	if (slot->key)
		return slot->number;
	tree->nodes =
		torsh_array_reserve(tree->nodes, tree->n, &tree->n_room, sizeof(*tree->nodes));
	tree->nodes[tree->n++] = (struct html_node){.parent = parent, .frame = frame};
	torsh_key_index_fill(&tree->children, slot, key, number);
	return number;
}

void torsh_html_tree_add(struct html_tree *tree, uint32_t node, enum html_weight weight,
			 uint64_t blocks, uint64_t bytes)
{
	uint32_t *number = &tree->nodes[node].values;
	struct html_value *value;

	if (!*number) {
		tree->values = torsh_array_reserve(tree->values, tree->n_values, &tree->values_room,
						   sizeof(*tree->values));
		tree->values[tree->n_values++] = (struct html_values){0};
		*number = (uint32_t)tree->n_values;
	}
	value = &tree->values[*number - 1].self[weight];
	value->blocks += blocks;
	value->bytes += bytes;
}

/* Returns a node's own weights. */
static const struct html_values *values_of(const struct html_tree *tree,
					   const struct html_node *node)
{
	static const struct html_values none;

	return node->values ? &tree->values[node->values - 1] : &none;
}

/* ---- what is kept ---------------------------------------------------------------------------- */

/* Returns by node the largest share of any weight in its subtree; the caller frees the array. */
static float *find_shares(const struct html_tree *tree)
{
	float *shares = torsh_need_items(NULL, 0, tree->n, sizeof(*shares));
	uint64_t *whole = torsh_need_items(NULL, 0, tree->n, sizeof(*whole));

	for (size_t weight = 0; weight < N_HTML_WEIGHTS; weight++) {
		for (size_t i = 0; i < tree->n; i++)
			whole[i] = values_of(tree, &tree->nodes[i])->self[weight].bytes;
		for (size_t i = tree->n - 1; i > 0; i--)
			whole[tree->nodes[i].parent] += whole[i];
		for (size_t i = 0; whole[0] && i < tree->n; i++) {
			float share = (float)((double)whole[i] / (double)whole[0]);

			shares[i] = share > shares[i] ? share : shares[i];
		}
	}
	free(whole);
	return shares;
}

static int compare_shares(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x < y) - (x > y);
}

/* Nodes with a share above the result are on the page. */
static float find_threshold(const float *shares, size_t n, size_t n_max, float threshold)
{
	float *sorted;

	if (n <= n_max)
		return threshold;
	sorted = torsh_need_items(NULL, 0, n, sizeof(*sorted));
	memcpy(sorted, shares, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare_shares);
	threshold = sorted[n_max] > threshold ? sorted[n_max] : threshold;
	free(sorted);
	return threshold;
}

/* The nodes of the page: first the kept ones, then nodes for their "others". */
struct page_node {
	uint32_t parent, frame; /* numbered as on the page */
	struct html_values values;
};

struct page_nodes {
	struct page_node *items;
	size_t n, n_room;
};

static void put_node(struct page_nodes *page, const struct page_node *node)
{
	page->items =
		torsh_array_reserve(page->items, page->n, &page->n_room, sizeof(*page->items));
	page->items[page->n++] = *node;
}

static size_t keep_nodes(struct page_nodes *page, struct html_tree *tree,
			 struct html_frames *frames, size_t n_max)
{
	float *shares = find_shares(tree);
	float threshold =
		find_threshold(shares, tree->n, n_max < HTML_NODES_WHOLE ? n_max : HTML_NODES_WHOLE,
			       n_max < HTML_NODES_WHOLE ? SHARE_MIN : 0);
	size_t n_left_out = 0;

	for (size_t i = 0; i < tree->n; i++) {
		struct html_node *node = &tree->nodes[i];

		node->number = UINT32_MAX;
		if (i && shares[i] <= threshold) {
			n_left_out++;
			continue;
		}
		node->number = (uint32_t)page->n;
		put_node(page, &(struct page_node){
				       .parent = tree->nodes[node->parent].number,
				       .frame = torsh_html_frames_use(frames, node->frame),
				       .values = *values_of(tree, node),
			       });
	}
	free(shares);
	return n_left_out;
}

/* Add each dropped node to the "others" of its innermost kept ancestor. */
static void fold_others(struct page_nodes *page, struct html_tree *tree, uint32_t frame)
{
	size_t n_kept = page->n;
	uint32_t *others = torsh_need_items(NULL, 0, n_kept, sizeof(*others));

	for (size_t i = 1; i < tree->n; i++) {
		struct html_node *node = &tree->nodes[i];
		uint32_t around = tree->nodes[node->parent].number;

		if (node->number != UINT32_MAX)
			continue;
		if (around < n_kept && !others[around]) {
			put_node(page, &(struct page_node){.parent = around, .frame = frame});
			others[around] = (uint32_t)page->n - 1;
		}
		node->number = around < n_kept ? others[around] : around;
		for (size_t weight = 0; weight < N_HTML_WEIGHTS; weight++) {
			struct html_value *sum = &page->items[node->number].values.self[weight];
			const struct html_value *own = &values_of(tree, node)->self[weight];

			sum->blocks += own->blocks;
			sum->bytes += own->bytes;
		}
	}
	free(others);
}

/* ---- how it is written ----------------------------------------------------------------------- */

static void put_weight(struct json_writer *json, const struct page_nodes *page, size_t weight)
{
	torsh_json_begin_object(json, weight_names[weight]);
	torsh_json_begin_array(json, "bytes");
	for (size_t i = 0; i < page->n; i++)
		torsh_json_put_u64(json, NULL, page->items[i].values.self[weight].bytes);
	torsh_json_end_array(json);
	torsh_json_begin_array(json, "blocks");
	for (size_t i = 0; i < page->n; i++)
		torsh_json_put_u64(json, NULL, page->items[i].values.self[weight].blocks);
	torsh_json_end_array(json);
	torsh_json_end_object(json);
}

static bool has_weight(const struct page_nodes *page, size_t weight)
{
	for (size_t i = 0; i < page->n; i++) {
		if (page->items[i].values.self[weight].bytes)
			return true;
	}
	return false;
}

void torsh_html_tree_put(struct html_tree *tree, const char *name, struct html_frames *frames,
			 struct json_writer *json, size_t n_max)
{
	struct page_nodes page = {0};
	size_t n_left_out = keep_nodes(&page, tree, frames, n_max);

	if (n_left_out)
		fold_others(&page, tree, torsh_html_frames_use(frames, HTML_FRAME_NUMBER_OTHERS));
	torsh_json_begin_object(json, name);
	torsh_json_put_u64(json, "left_out", n_left_out);
	torsh_json_begin_array(json, "parent");
	for (size_t i = 0; i < page.n; i++)
		torsh_json_put_u64(json, NULL, i - page.items[i].parent);
	torsh_json_end_array(json);
	torsh_json_begin_array(json, "frame");
	for (size_t i = 0; i < page.n; i++)
		torsh_json_put_u64(json, NULL, page.items[i].frame);
	torsh_json_end_array(json);
	torsh_json_begin_object(json, "weights");
	for (size_t weight = 0; weight < N_HTML_WEIGHTS; weight++) {
		if (weight != HTML_HIGHEST && has_weight(&page, weight))
			put_weight(json, &page, weight);
	}
	torsh_json_end_object(json);
	torsh_json_end_object(json);
	free(page.items);
}
