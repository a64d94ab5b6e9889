/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ranks/fold/fold_pack.h"

#include <errno.h>
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/ranks/fold/fold_format.h"

/* ---- pack ------------------------------------------------------------------------------------ */

static void pack_texts(Torsh__FoldShared *message, const struct fold *fold)
{
	size_t n = 0;

	for (size_t i = 0; i < fold->n_texts; i++)
		n += strlen(fold->texts[i]) + 1;
	message->has_texts = true;
	message->texts = (ProtobufCBinaryData){.len = n, .data = torsh_need(malloc(n + 1))};
	n = 0;
	for (size_t i = 0; i < fold->n_texts; i++) {
		size_t n_text = strlen(fold->texts[i]) + 1;

		memcpy(message->texts.data + n, fold->texts[i], n_text);
		n += n_text;
	}
}

static void pack_nodes(Torsh__FoldShared *message, const struct fold *fold)
{
	size_t n = fold->n_nodes - 1;
	uint32_t *columns = torsh_need_items(NULL, 0, 5 * n, sizeof(*columns));

	message->node_parent = columns;
	message->node_kind = columns + n;
	message->node_function = columns + 2 * n;
	message->node_file = columns + 3 * n;
	message->node_build_id = columns + 4 * n;
	message->n_node_parent = message->n_node_kind = message->n_node_function =
		message->n_node_file = message->n_node_build_id = n;
	for (size_t i = 0; i < n; i++) {
		const struct fold_node *node = &fold->nodes[i + 1];

		message->node_parent[i] = node->parent;
		message->node_kind[i] = node->kind;
		message->node_function[i] = node->function;
		message->node_file[i] = node->file;
		message->node_build_id[i] = node->build_id;
	}
}

static void pack_table(Torsh__FoldTable *message, const struct fold *fold, enum fold_table_id id)
{
	const struct fold_table *table = &fold->tables[id];
	size_t n = table->n, n_columns = torsh_fold_columns(id);
	uint32_t last = 0;

	torsh__fold_table__init(message);
	message->has_table = true;
	message->table = id;
	message->n_node_step = message->n_sub = n;
	message->n_values = n * n_columns;
	message->node_step = torsh_need_items(NULL, 0, n, sizeof(*message->node_step));
	message->sub = torsh_need_items(NULL, 0, n, sizeof(*message->sub));
	message->values = torsh_need_items(NULL, 0, n * n_columns, sizeof(*message->values));
	for (size_t i = 0; i < n; i++) {
		const struct fold_row *row = &table->rows[i];

		message->node_step[i] = row->node - last;
		last = row->node;
		message->sub[i] = row->sub;
		for (size_t k = 0; k < n_columns; k++)
			message->values[k * n + i] = row->values[k];
	}
}

uint8_t *torsh_fold_pack(const struct fold *fold, size_t *n)
{
	Torsh__FoldShared message = TORSH__FOLD_SHARED__INIT;
	Torsh__FoldTable tables[N_FOLD_TABLES], *pointers[N_FOLD_TABLES];
	uint8_t *packed;

	message.has_shift = true;
	message.shift = fold->shift;
	pack_texts(&message, fold);
	pack_nodes(&message, fold);
	message.n_tables = N_FOLD_TABLES;
	message.tables = pointers;
	for (size_t i = 0; i < N_FOLD_TABLES; i++) {
		pack_table(&tables[i], fold, i);
		pointers[i] = &tables[i];
	}
	*n = torsh__fold_shared__get_packed_size(&message);
	packed = torsh_need(malloc(*n + 1));
	torsh__fold_shared__pack(&message, packed);
	free(message.texts.data);
	free(message.node_parent);
	for (size_t i = 0; i < N_FOLD_TABLES; i++) {
		free(tables[i].node_step);
		free(tables[i].sub);
		free(tables[i].values);
	}
	return packed;
}

/* ---- unpack: with a limit, because a few bytes can stand for many ---------------------------- */

struct limit {
	size_t left;
};

static void *limited_alloc(void *context, size_t n)
{
	struct limit *limit = context;

	if (n + sizeof(void *) > limit->left)
		return NULL;
	limit->left -= n + sizeof(void *);
	return malloc(n ? n : 1);
}

static void limited_free(void *context, void *pointer)
{
	(void)context;
	free(pointer);
}

static ProtobufCAllocator allocator_of(struct limit *limit, size_t n)
{
	limit->left = FOLD_MEMORY_FACTOR * n + 4096;
	return (ProtobufCAllocator){
		.alloc = limited_alloc, .free = limited_free, .allocator_data = limit};
}

/* Returns by number of a text in the message its number in the fold, or NULL; the caller frees. */
static uint32_t *unpack_texts(struct fold *fold, const ProtobufCBinaryData *texts, size_t *n)
{
	const char *at = (const char *)texts->data, *end = at + texts->len;
	uint32_t *number;
	size_t n_all = 0;

	if (!texts->len || end[-1])
		return NULL;
	for (const char *i = at; i < end; i++)
		n_all += !*i;
	number = torsh_need_items(NULL, 0, n_all, sizeof(*number));
	for (*n = 0; at < end; at += strlen(at) + 1)
		number[(*n)++] = torsh_fold_text(fold, at);
	return number;
}

static bool is_node_valid(const Torsh__FoldShared *message, size_t i, size_t n_texts)
{
	return message->node_parent[i] <= i && message->node_kind[i] < N_FOLD_NODE_KINDS &&
	       message->node_function[i] < n_texts && message->node_file[i] < n_texts &&
	       message->node_build_id[i] < n_texts;
}

/* Returns likewise the nodes' numbers. */
static uint32_t *unpack_nodes(struct fold *fold, const Torsh__FoldShared *message,
			      const uint32_t *texts, size_t n_texts)
{
	size_t n = message->n_node_parent;
	uint32_t *number;

	if (message->n_node_kind != n || message->n_node_function != n ||
	    message->n_node_file != n || message->n_node_build_id != n)
		return NULL;
	number = torsh_need_items(NULL, 0, n + 1, sizeof(*number));
	for (size_t i = 0; i < n; i++) {
		if (!is_node_valid(message, i, n_texts)) {
			free(number);
			return NULL;
		}
		number[i + 1] = torsh_fold_node(
			fold, number[message->node_parent[i]],
			&(struct fold_key){
				.kind = (enum fold_node_kind)message->node_kind[i],
				.function = fold->texts[texts[message->node_function[i]]],
				.file = fold->texts[texts[message->node_file[i]]],
				.build_id = fold->texts[texts[message->node_build_id[i]]]});
	}
	return number;
}

static int unpack_table(struct fold *fold, const Torsh__FoldTable *message, const uint32_t *nodes,
			size_t n_nodes)
{
	size_t n = message->n_sub, n_columns;
	uint64_t node = 0, values[FOLD_COLUMNS_MAX];

	/* A table of a later version. */
	if (message->table >= N_FOLD_TABLES)
		return 0;
	n_columns = torsh_fold_columns(message->table);
	if (message->n_node_step != n || message->n_values != n * n_columns)
		return -EPROTO;
	for (size_t i = 0; i < n; i++) {
		node += message->node_step[i];
		if (!node || node > n_nodes)
			return -EPROTO;
		for (size_t k = 0; k < n_columns; k++)
			values[k] = message->values[k * n + i];
		torsh_fold_add(fold, message->table, nodes[node], message->sub[i], values);
	}
	return 0;
}

/* Into an empty fold, so that step buckets are those of the message. */
static int unpack_shared(struct fold *fold, const Torsh__FoldShared *message)
{
	size_t n_texts;
	uint32_t *texts = unpack_texts(fold, &message->texts, &n_texts), *nodes;
	int rc = 0;

	if (!texts || message->shift > 31) {
		free(texts);
		return -EPROTO;
	}
	nodes = unpack_nodes(fold, message, texts, n_texts);
	free(texts);
	if (!nodes)
		return -EPROTO;
	fold->shift = message->shift;
	for (size_t i = 0; i < message->n_tables && !rc; i++)
		rc = unpack_table(fold, message->tables[i], nodes, message->n_node_parent);
	free(nodes);
	return rc;
}

int torsh_fold_unpack(struct fold *fold, const uint8_t *packed, size_t n)
{
	struct limit limit;
	ProtobufCAllocator allocator = allocator_of(&limit, n);
	Torsh__FoldShared *message = torsh__fold_shared__unpack(&allocator, n, packed);
	struct fold *part;
	int rc;

	if (!message)
		return -EPROTO;
	part = torsh_fold_create();
	rc = unpack_shared(part, message);
	if (!rc)
		torsh_fold_merge(fold, part);
	torsh_fold_destroy(part);
	torsh__fold_shared__free_unpacked(message, &allocator);
	return rc;
}

/* ---- a process ------------------------------------------------------------------------------- */

static bool are_columns_equal(const Torsh__FoldRank *rank)
{
	const size_t sizes[] = {rank->n_name,	   rank->n_sequence_step, rank->n_step,
				rank->n_bytes,	   rank->n_issued_step,	  rank->n_queued_ns,
				rank->n_length_ns, rank->n_flags};
	const size_t cpu[] = {rank->n_cpu_ran_ns, rank->n_cpu_waited_ns, rank->n_cpu_throttled_ns,
			      rank->n_cpu_stolen_ns};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		if (sizes[i] != rank->n_group)
			return false;
	}
	for (size_t i = 0; i < sizeof(cpu) / sizeof(*cpu); i++) {
		if (cpu[i] && cpu[i] != rank->n_group)
			return false;
	}
	if (rank->n_cpu_ran_ns != rank->n_cpu_waited_ns)
		return false;
	return rank->n_leads == rank->n_group * N_FOLD_LEADS && rank->n_path == rank->n_path_ns &&
	       (!rank->n_path_calls || rank->n_path == rank->n_path_calls) &&
	       rank->n_path_calls == rank->n_path_step_ns && rank->n_phases % N_FOLD_PHASES == 0;
}

#define CLOCK_NS_MAX (INT64_C(1) << 61) /* sums of two fit */

/* Points with times and offsets that can be added up. */
static bool is_clock_valid(const Torsh__FoldClock *clock)
{
	int64_t at_ns = 0, offset_ns = 0;

	if (!clock->n_at_step || clock->n_offset_step != clock->n_at_step ||
	    clock->n_error_ns != clock->n_at_step)
		return false;
	for (size_t i = 0; i < clock->n_at_step; i++) {
		if (clock->at_step[i] > CLOCK_NS_MAX ||
		    __builtin_add_overflow(at_ns, (int64_t)clock->at_step[i], &at_ns) ||
		    __builtin_add_overflow(offset_ns, clock->offset_step[i], &offset_ns) ||
		    at_ns > CLOCK_NS_MAX || offset_ns > CLOCK_NS_MAX || offset_ns < -CLOCK_NS_MAX)
			return false;
	}
	return true;
}

static bool is_rank_valid(const Torsh__FoldRank *rank)
{
	for (size_t i = 0; i < rank->n_clocks; i++) {
		if (!is_clock_valid(rank->clocks[i]))
			return false;
	}
	if (!are_columns_equal(rank) || rank->shift > 31 || rank->n_totals > 1024)
		return false;
	for (size_t i = 0; i < rank->n_group; i++) {
		if (rank->group[i] >= rank->n_texts || rank->name[i] >= rank->n_texts)
			return false;
	}
	return true;
}

Torsh__FoldRank *torsh_fold_unpack_rank(const uint8_t *packed, size_t n)
{
	struct limit limit;
	ProtobufCAllocator allocator = allocator_of(&limit, n);
	Torsh__FoldRank *rank = torsh__fold_rank__unpack(&allocator, n, packed);

	if (rank && !is_rank_valid(rank)) {
		torsh__fold_rank__free_unpacked(rank, NULL);
		return NULL;
	}
	return rank;
}
