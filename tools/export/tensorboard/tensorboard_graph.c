/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/export/tensorboard/tensorboard_graph.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/containers/hash_map.h"
#include "tools/base/containers/key_index.h"
#include "tools/base/die.h"
#include "tools/base/utf8.h"

#define NODES_MAX 10000u /* more than the graph's page can lay out */
#define PRODUCER 22 /* version of the graph format, as in PyTorch's own writer */
#define N_ATTRIBUTES 2
#define INPUTS_MAX 32 /* of a node; more are left out */
#define READS_MAX 64 /* of an operator */

struct node {
	Tensorboard__NodeDef message;
	char *inputs[INPUTS_MAX];
	Tensorboard__AttrEntry attributes[N_ATTRIBUTES], *all_attributes[N_ATTRIBUTES];
	Tensorboard__AttrValue values[N_ATTRIBUTES];
	uint32_t thread;
};

/* What the next operator of a thread reads. */
struct reads {
	uint64_t addresses[READS_MAX];
	size_t n;
};

struct tensorboard_graph {
	uint64_t from_ns, to_ns;
	struct node **nodes;
	size_t n, capacity;
	struct key_index ordinals; /* numbers of nodes from 1, including inner spans */
	struct forward_spans *forward;
	struct hash_map reads; /* thread -> struct reads */
	struct hash_map writers; /* address -> index of the node that wrote it last */
	bool has_reads;
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
	torsh_hash_map_free_values(&graph->reads, free);
	torsh_hash_map_free(&graph->writers);
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
	char *input = torsh_need_text("%s%s", kind, from->message.name);

	for (size_t i = 0; i < to->message.n_input; i++) {
		if (!strcmp(to->inputs[i], input) || to->message.n_input == INPUTS_MAX) {
			free(input);
			return;
		}
	}
	to->inputs[to->message.n_input++] = input;
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
		add_node(graph, span);
		number = graph->n;
	}
	span->own = (void *)(uintptr_t)number;
	return graph->nodes[number - 1];
}

/* ---- which memory goes where ----------------------------------------------------------------- */

static void set_writer(struct tensorboard_graph *graph, uint64_t address, const struct span *span)
{
	size_t number = span ? (size_t)(uintptr_t)span->own : 0, unused;

	torsh_hash_map_remove(&graph->writers, &address, sizeof(address), &unused);
	if (number)
		torsh_hash_map_put(&graph->writers, &address, sizeof(address), number - 1);
}

static struct reads *reads_of(struct tensorboard_graph *graph, uint32_t thread, bool is_needed)
{
	const struct hash_entry *entry =
		torsh_hash_map_find(&graph->reads, &thread, sizeof(thread));
	struct reads *reads;

	if (entry || !is_needed)
		return entry ? (struct reads *)entry->value : NULL;
	reads = torsh_need(calloc(1, sizeof(*reads)));
	torsh_hash_map_put(&graph->reads, &thread, sizeof(thread), (size_t)reads);
	return reads;
}

static void add_reads(struct tensorboard_graph *graph, uint32_t thread,
		      const struct event_op_read *read)
{
	const uint64_t addresses[] = {read->first, read->second, read->third, read->fourth};
	struct reads *reads = reads_of(graph, thread, true);

	graph->has_reads = true;
	for (size_t i = 0; i < sizeof(addresses) / sizeof(*addresses); i++)
		if (addresses[i] && addresses[i] != OP_READS_MORE && reads->n < READS_MAX)
			reads->addresses[reads->n++] = addresses[i];
}

void torsh_tensorboard_graph_see(struct tensorboard_graph *graph,
				 const struct timeline_event *event, const struct span *innermost)
{
	const struct event_tensor *tensor = &event->event.tensor;

	if (event->event.id == EVENT_OP_READ)
		add_reads(graph, event->thread, &event->event.op_read);
	else if (event->event.id == EVENT_TENSOR)
		set_writer(graph, tensor->address, tensor->is_free ? NULL : innermost);
}

/*
 * Returns which of what the operator reads it writes, too; n: none. By PyTorch's names: "add_" writes
 * its first tensor, and of the overloads ".out" and ".grad_input" the results come last.
 */
static size_t written_by(const struct span *span, size_t n)
{
	const char *name = torsh_span_name(span);
	const char *overload = torsh_timeline_label(span->process, span->overload);
	size_t length = strlen(name);

	if (length && name[length - 1] == '_')
		return 0;
	return n && overload && strstr(overload, "out") ? n - 1 : n;
}

/* Add the edges of what the span reads; before its node is known, what it reads is forgotten. */
static void join_reads(struct tensorboard_graph *graph, const struct span *span, struct node *node)
{
	struct reads *reads = reads_of(graph, span->thread, false);
	size_t n = reads ? reads->n : 0;

	if (reads)
		reads->n = 0;
	for (size_t i = 0; node && i < n; i++) {
		const struct hash_entry *writer = torsh_hash_map_find(
			&graph->writers, &reads->addresses[i], sizeof(*reads->addresses));

		if (writer && graph->nodes[writer->value] != node)
			add_edge(node, "", graph->nodes[writer->value]);
	}
	if (n && written_by(span, n) < n)
		set_writer(graph, reads->addresses[written_by(span, n)], node ? span : NULL);
}

void torsh_tensorboard_graph_begin(struct tensorboard_graph *graph, struct span *span)
{
	struct node *node = find_node(graph, span);
	struct forward forward;
	struct key_slot *slot;

	if (span->kind == SPAN_OPERATOR)
		join_reads(graph, span, node);
	if (!node)
		return;
	slot = torsh_key_index_find(&graph->ordinals, span->ordinal + 1);
	torsh_key_index_fill(&graph->ordinals, slot, span->ordinal + 1,
			     (uint32_t)(uintptr_t)span->own);
	torsh_forward_add(graph->forward, span);
	if (!torsh_forward_take(graph->forward, span, &forward))
		return;
	slot = torsh_key_index_find(&graph->ordinals, forward.ordinal + 1);
	if (slot->key && graph->nodes[slot->number - 1] != node)
		add_edge(node, "^", graph->nodes[slot->number - 1]);
}

static bool has_data(const struct node *node)
{
	for (size_t i = 0; i < node->message.n_input; i++)
		if (*node->inputs[i] != '^')
			return true;
	return false;
}

/* Join what reads nothing that another node wrote to what its thread ran before. */
static void join_rest(const struct tensorboard_graph *graph)
{
	struct key_index last; /* by thread + 1: its last node */

	torsh_key_index_create(&last);
	for (size_t i = 0; i < graph->n; i++) {
		struct node *node = graph->nodes[i];
		uint64_t key = (uint64_t)node->thread + 1;
		struct key_slot *slot = torsh_key_index_find(&last, key);

		if (slot->key && !has_data(node))
			add_edge(node, graph->has_reads ? "^" : "", graph->nodes[slot->number]);
		if (slot->key)
			slot->number = (uint32_t)i;
		else
			torsh_key_index_fill(&last, slot, key, (uint32_t)i);
	}
	torsh_key_index_destroy(&last);
}

void torsh_tensorboard_graph_write(const struct tensorboard_graph *graph,
				   struct tensorboard_file *tensorboard)
{
	Tensorboard__GraphDef message = TENSORBOARD__GRAPH_DEF__INIT;
	Tensorboard__VersionDef versions = TENSORBOARD__VERSION_DEF__INIT;
	Tensorboard__NodeDef **nodes = torsh_need_items(NULL, 0, graph->n, sizeof(*nodes));

	join_rest(graph);
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
