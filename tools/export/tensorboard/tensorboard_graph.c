/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/export/tensorboard/tensorboard_graph.h"

#include <ctype.h>
#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/containers/key_index.h"
#include "tools/base/die.h"
#include "tools/base/utf8.h"

#define NODES_MAX 10000u /* more than the graph's page can lay out */
#define PRODUCER 22 /* version of the graph format, as in PyTorch's own writer */
#define N_ATTRIBUTES 2
#define INPUTS_MAX 2

struct node {
	Tensorboard__NodeDef message;
	char *inputs[INPUTS_MAX];
	Tensorboard__AttrEntry attributes[N_ATTRIBUTES], *all_attributes[N_ATTRIBUTES];
	Tensorboard__AttrValue values[N_ATTRIBUTES];
	uint32_t thread;
};

struct tensorboard_graph {
	uint64_t from_ns, to_ns;
	struct node **nodes;
	size_t n, capacity;
	struct key_index ordinals; /* numbers of nodes from 1, including inner spans */
	struct forward_spans *forward;
};

struct tensorboard_graph *torsh_tensorboard_graph_create(uint64_t from_ns, uint64_t to_ns)
{
	struct tensorboard_graph *graph = torsh_need(calloc(1, sizeof(*graph)));

	graph->from_ns = from_ns;
	graph->to_ns = to_ns;
	graph->forward = torsh_forward_create();
	torsh_key_index_create(&graph->ordinals);
	return graph;
}

static void free_node(struct node *node)
{
	for (size_t i = 0; i < node->message.n_input; i++)
		free(node->inputs[i]);
	for (size_t i = 0; i < node->message.n_attr; i++)
		free(node->values[i].s.data);
	free(node->message.name);
	free(node->message.op);
	free(node);
}

void torsh_tensorboard_graph_destroy(struct tensorboard_graph *graph)
{
	for (size_t i = 0; i < graph->n; i++)
		free_node(graph->nodes[i]);
	free(graph->nodes);
	torsh_forward_destroy(graph->forward);
	torsh_key_index_destroy(&graph->ordinals);
	free(graph);
}

/*
 * Replace each run of characters that node names can't have by '.'; a dot becomes `dot`, because
 * slashes separate scopes.
 */
static void clean_name(char *name, char dot)
{
	char *to = name;

	for (const char *from = name; *from; from++) {
		if (isalnum((unsigned char)*from) || *from == '_')
			*to++ = *from;
		else if (*from == '.')
			*to++ = dot;
		else if (to == name || to[-1] != '.')
			*to++ = '.';
	}
	*to = '\0';
}

/*
 * "forward/net/0/aten.addmm_17": the phase, the module's path without its class, the operator, the
 * node's number.
 */
static char *make_name(const struct span *span, size_t number)
{
	const char *module = torsh_timeline_label(span->process, span->module), *end;
	char *operator= torsh_need(strdup(torsh_span_name(span))), *path, *name;

	end = module ? strchr(module, ':') : NULL;
	path = torsh_need(strndup(module ? module : "",
				  end ? (size_t)(end - module) : strlen(module ? module : "")));
	clean_name(path, '/');
	clean_name(operator, '.');
	name = torsh_need_text("%s/%s%s%s_%zu", torsh_phase_names[span->phase], path,
			       *path ? "/" : "", operator, number);
	free(operator);
	free(path);
	return name;
}

static void set_attribute(struct node *node, const char *key, const char *text)
{
	size_t i = node->message.n_attr;

	if (!text)
		return;
	node->message.n_attr++;
	tensorboard__attr_entry__init(&node->attributes[i]);
	tensorboard__attr_value__init(&node->values[i]);
	node->all_attributes[i] = &node->attributes[i];
	node->attributes[i].key = (char *)(uintptr_t)key;
	node->attributes[i].value = &node->values[i];
	node->values[i].has_s = 1;
	node->values[i].s.data = torsh_need((uint8_t *)strdup(text));
	node->values[i].s.len = strlen(text);
}

static struct node *add_node(struct tensorboard_graph *graph, const struct span *span)
{
	struct node *node = torsh_need(calloc(1, sizeof(*node)));

	tensorboard__node_def__init(&node->message);
	node->message.name = make_name(span, graph->n);
	node->message.op = torsh_utf8_clean(torsh_span_name(span));
	node->message.input = node->inputs;
	node->message.attr = node->all_attributes;
	node->thread = span->thread;
	set_attribute(node, "inputs", torsh_timeline_label(span->process, span->inputs));
	set_attribute(node, "module", torsh_timeline_label(span->process, span->module));
	graph->nodes = torsh_array_reserve(graph->nodes, graph->n, &graph->capacity,
					   sizeof(*graph->nodes));
	return graph->nodes[graph->n++] = node;
}

static void add_edge(struct node *to, const char *kind, const struct node *from)
{
	to->inputs[to->message.n_input++] = torsh_need_text("%s%s", kind, from->message.name);
}

/* Add an edge to the new node from the one that its thread ran before. */
static void join_node(struct tensorboard_graph *graph, struct node *node)
{
	for (size_t i = graph->n - 1; i; i--) {
		if (graph->nodes[i - 1]->thread == node->thread) {
			add_edge(node, "", graph->nodes[i - 1]);
			return;
		}
	}
}

/*
 * Returns the node of a span or of its outermost operator; creates it for an outermost span.
 * Returns NULL if there is none.
 */
static struct node *find_node(struct tensorboard_graph *graph, struct span *span)
{
	const struct span *outer = torsh_span_outer_operator(span);
	size_t number = outer ? (size_t)(uintptr_t)outer->own : 0;

	/* Scopes of the program enclose operators. */
	if (span->kind != SPAN_OPERATOR || span->scope == OP_USER ||
	    span->start_ns < graph->from_ns || span->start_ns >= graph->to_ns ||
	    graph->n == NODES_MAX)
		return NULL;
	if (!number) {
		join_node(graph, add_node(graph, span));
		number = graph->n;
	}
	span->own = (void *)(uintptr_t)number;
	return graph->nodes[number - 1];
}

void torsh_tensorboard_graph_begin(struct tensorboard_graph *graph, struct span *span)
{
	struct node *node = find_node(graph, span);
	struct forward forward;
	struct key_slot *slot;

	if (!node)
		return;
	slot = torsh_key_index_find(&graph->ordinals, span->ordinal + 1);
	torsh_key_index_fill(&graph->ordinals, slot, span->ordinal + 1,
			     (uint32_t)(uintptr_t)span->own);
	torsh_forward_add(graph->forward, span);
	if (!torsh_forward_take(graph->forward, span, &forward))
		return;
	slot = torsh_key_index_find(&graph->ordinals, forward.ordinal + 1);
	if (slot->key && node->message.n_input < INPUTS_MAX &&
	    graph->nodes[slot->number - 1] != node)
		add_edge(node, "^", graph->nodes[slot->number - 1]);
}

void torsh_tensorboard_graph_write(const struct tensorboard_graph *graph,
				   struct tensorboard_file *tensorboard)
{
	Tensorboard__GraphDef message = TENSORBOARD__GRAPH_DEF__INIT;
	Tensorboard__VersionDef versions = TENSORBOARD__VERSION_DEF__INIT;
	Tensorboard__NodeDef **nodes = torsh_need_items(NULL, 0, graph->n, sizeof(*nodes));

	for (size_t i = 0; i < graph->n; i++)
		nodes[i] = &graph->nodes[i]->message;
	versions.has_producer = 1;
	versions.producer = PRODUCER;
	message.n_node = graph->n;
	message.node = nodes;
	message.versions = &versions;
	if (graph->n)
		torsh_tensorboard_graph(tensorboard, &message);
	free(nodes);
}
