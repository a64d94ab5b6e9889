/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/export/html/html_tree.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/base/memory.h"

#define CHILDREN_FIRST 16u
#define SHARE_MIN 2e-5f /* of each weight: smaller nodes are too narrow to draw */

static const char *const weight_names[N_HTML_WEIGHTS] = {
#define WEIGHT(NAME, name) #name,
	HTML_WEIGHTS
#undef WEIGHT
};

void torsh_html_tree_create(struct html_tree *tree)
{
	*tree = (struct html_tree){0};
	tree->grown = torsh_array_reserve(NULL, 0, &tree->grown_room, sizeof(*tree->grown));
	tree->n_grown = 1;
	tree->n_children = CHILDREN_FIRST;
	tree->children = torsh_memory_table(tree->n_children, sizeof(*tree->children));
}

void torsh_html_tree_free_grown(struct html_tree *tree)
{
	free(tree->grown);
	tree->grown = NULL;
}

void torsh_html_tree_free(struct html_tree *tree)
{
	torsh_html_tree_free_grown(tree);
	free(tree->children);
	for (size_t weight = 0; weight < N_HTML_WEIGHTS; weight++)
		torsh_usage_list_free(&tree->weights[weight]);
	free(tree->nodes);
}

/* ---- growth ---------------------------------------------------------------------------------- */

/* Returns where the number of a node is, or an empty place for it. */
static uint32_t *find_child(const struct html_tree *tree, uint32_t parent, uint32_t frame)
{
	uint64_t hash = ((uint64_t)parent << 32 | frame) * UINT64_C(0x9e3779b97f4a7c15);
	uint32_t mask = tree->n_children - 1, i = (uint32_t)(hash >> 32) & mask;

	for (; tree->children[i]; i = (i + 1) & mask) {
		const struct html_grown *child = &tree->grown[tree->children[i]];

		if (child->parent == parent && child->frame == frame)
			break;
	}
	return &tree->children[i];
}

static void double_children(struct html_tree *tree)
{
	free(tree->children);
	tree->n_children *= 2;
	tree->children = torsh_memory_table(tree->n_children, sizeof(*tree->children));
	for (uint32_t i = 1; i < tree->n_grown; i++)
		*find_child(tree, tree->grown[i].parent, tree->grown[i].frame) = i;
}

uint32_t torsh_html_tree_child(struct html_tree *tree, uint32_t parent, uint32_t frame)
{
	uint32_t *child = find_child(tree, parent, frame), number = (uint32_t)tree->n_grown;

	if (*child)
		return *child;
	*child = number;
	tree->grown = torsh_array_reserve(tree->grown, tree->n_grown, &tree->grown_room,
					  sizeof(*tree->grown));
	tree->grown[tree->n_grown++] = (struct html_grown){.parent = parent, .frame = frame};
	if (tree->n_grown > tree->n_children / 4 * 3)
		double_children(tree);
	return number;
}

void torsh_html_tree_add(struct html_tree *tree, uint32_t node, enum html_weight weight,
			 uint64_t blocks, uint64_t bytes)
{
	torsh_usage_list_add(&tree->weights[weight], node, blocks, bytes);
}

/* ---- what is kept ---------------------------------------------------------------------------- */

/* Raise the shares by node to those of a weight in the node's subtree. */
static void raise_shares(const struct html_tree *tree, const struct usage_list *weights,
			 float *shares, uint64_t *whole)
{
	struct usage_at at = {0};

	memset(whole, 0, tree->n_grown * sizeof(*whole));
	while (torsh_usage_list_next(weights, &at))
		whole[at.number] += at.bytes;
	for (size_t i = tree->n_grown - 1; i > 0; i--)
		whole[tree->grown[i].parent] += whole[i];
	for (size_t i = 0; whole[0] && i < tree->n_grown; i++) {
		float share = (float)((double)whole[i] / (double)whole[0]);

		shares[i] = share > shares[i] ? share : shares[i];
	}
}

/* Returns by node the largest share of any weight in its subtree; the caller frees the array. */
static float *find_shares(const struct html_tree *tree)
{
	float *shares = torsh_need_items(NULL, 0, tree->n_grown, sizeof(*shares));
	uint64_t *whole = torsh_need_items(NULL, 0, tree->n_grown, sizeof(*whole));

	for (size_t weight = 0; weight < N_HTML_WEIGHTS; weight++) {
		if (tree->weights[weight].n_packed)
			raise_shares(tree, &tree->weights[weight], shares, whole);
	}
	free(whole);
	return shares;
}

static int compare_shares(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x < y) - (x > y);
}

/*
 * Returns a threshold, the limit's own at least: at most n_max of the shares are above it. Drops
 * the shares that are not above the limit's own.
 */
static float find_threshold(float *shares, size_t n, size_t n_max)
{
	float threshold = n_max < HTML_NODES_WHOLE ? SHARE_MIN : 0;
	size_t n_above = 0;

	n_max = n_max < HTML_NODES_WHOLE ? n_max : HTML_NODES_WHOLE;
	for (size_t i = 0; i < n; i++) {
		if (shares[i] > threshold)
			shares[n_above++] = shares[i];
	}
	if (n_above <= n_max)
		return threshold;
	qsort(shares, n_above, sizeof(*shares), compare_shares);
	return shares[n_max];
}

static float threshold_of(const struct html_tree *tree, const float *shares, size_t n_max)
{
	float *copy = torsh_need_items(NULL, 0, tree->n_grown, sizeof(*copy)), threshold;

	memcpy(copy, shares, tree->n_grown * sizeof(*copy));
	threshold = find_threshold(copy, tree->n_grown, n_max);
	free(copy);
	return threshold;
}

static uint32_t put_node(struct html_tree *tree, const struct html_node *node)
{
	tree->nodes =
		torsh_array_reserve(tree->nodes, tree->n, &tree->n_room, sizeof(*tree->nodes));
	tree->nodes[tree->n] = *node;
	return (uint32_t)tree->n++;
}

/* Returns the node of others that a dropped child of a node of the pruned tree is in. */
static uint32_t others_of(struct html_tree *tree, uint32_t parent)
{
	uint32_t others;

	if (tree->nodes[parent].is_others)
		return parent;
	if (tree->nodes[parent].others)
		return tree->nodes[parent].others;
	others = put_node(tree, &(struct html_node){.parent = parent,
						    .frame = HTML_FRAME_NUMBER_OTHERS,
						    .is_others = true});
	tree->nodes[parent].others = others;
	return others;
}

static void prune_nodes(struct html_tree *tree, const float *shares, float threshold)
{
	put_node(tree, &(struct html_node){.share = shares[0]});
	for (size_t i = 1; i < tree->n_grown; i++) {
		struct html_grown *node = &tree->grown[i];
		uint32_t parent = tree->grown[node->parent].parent;

		if (shares[i] > threshold && !tree->nodes[parent].is_others) {
			node->parent = put_node(tree, &(struct html_node){.parent = parent,
									  .frame = node->frame,
									  .share = shares[i]});
		} else {
			node->parent = others_of(tree, parent);
			tree->n_dropped++;
		}
	}
}

void torsh_html_tree_prune(struct html_tree *tree, size_t n_max)
{
	float *shares;

	free(tree->children);
	tree->children = NULL;
	shares = find_shares(tree);
	prune_nodes(tree, shares, threshold_of(tree, shares, n_max));
	free(shares);
	for (size_t weight = 0; weight < N_HTML_WEIGHTS; weight++) {
		struct usage_at at = {0};

		while (torsh_usage_list_next(&tree->weights[weight], &at)) {
			struct html_value *sum =
				&tree->nodes[tree->grown[at.number].parent].self[weight];

			sum->blocks += at.blocks;
			sum->bytes += at.bytes;
		}
		torsh_usage_list_free(&tree->weights[weight]);
	}
}

uint32_t torsh_html_tree_pruned(const struct html_tree *tree, uint32_t grown)
{
	return tree->grown[grown].parent;
}

/* ---- what is put ----------------------------------------------------------------------------- */

/* The nodes of the page: first the kept ones, then nodes for their "others". */
struct page_node {
	uint32_t parent, frame; /* numbered as on the page */
	struct html_value self[N_HTML_WEIGHTS];
};

struct page_nodes {
	struct page_node *items;
	size_t n, n_room;
};

static uint32_t put_page_node(struct page_nodes *page, const struct page_node *node)
{
	page->items =
		torsh_array_reserve(page->items, page->n, &page->n_room, sizeof(*page->items));
	page->items[page->n] = *node;
	return (uint32_t)page->n++;
}

/* Put the nodes with the largest shares. Returns how many are left out. */
static size_t keep_nodes(struct page_nodes *page, struct html_tree *tree,
			 struct html_frames *frames, size_t n_max)
{
	float *shares = torsh_need_items(NULL, 0, tree->n, sizeof(*shares)), threshold;
	size_t n_left_out = tree->n_dropped;

	for (size_t i = 0; i < tree->n; i++)
		shares[i] = tree->nodes[i].share;
	threshold = find_threshold(shares, tree->n, n_max);
	free(shares);
	for (size_t i = 0; i < tree->n; i++) {
		struct html_node *node = &tree->nodes[i];

		node->number = UINT32_MAX;
		if (i && (node->is_others || node->share <= threshold)) {
			n_left_out += !node->is_others;
			continue;
		}
		node->number = (uint32_t)page->n;
		put_page_node(page, &(struct page_node){
					    .parent = tree->nodes[node->parent].number,
					    .frame = torsh_html_frames_use(frames, node->frame),
				    });
		memcpy(page->items[node->number].self, node->self, sizeof(node->self));
	}
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
		if (around < n_kept && !others[around])
			others[around] = put_page_node(
				page, &(struct page_node){.parent = around, .frame = frame});
		node->number = around < n_kept ? others[around] : around;
		for (size_t weight = 0; weight < N_HTML_WEIGHTS; weight++) {
			struct html_value *sum = &page->items[node->number].self[weight];

			sum->blocks += node->self[weight].blocks;
			sum->bytes += node->self[weight].bytes;
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
		torsh_json_put_u64(json, NULL, page->items[i].self[weight].bytes);
	torsh_json_end_array(json);
	torsh_json_begin_array(json, "blocks");
	for (size_t i = 0; i < page->n; i++)
		torsh_json_put_u64(json, NULL, page->items[i].self[weight].blocks);
	torsh_json_end_array(json);
	torsh_json_end_object(json);
}

static bool has_weight(const struct page_nodes *page, size_t weight)
{
	for (size_t i = 0; i < page->n; i++) {
		if (page->items[i].self[weight].bytes)
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
