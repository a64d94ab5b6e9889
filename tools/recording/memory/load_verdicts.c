/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Loads what was found out about live blocks. */
#include "tools/recording/load_parts.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

static void free_holders(struct recorded_verdicts *verdicts)
{
	for (size_t i = 0; i < verdicts->n_holders; i++) {
		free(verdicts->holders[i].path);
		free(verdicts->holders[i].variable);
		free(verdicts->holders[i].function);
		free(verdicts->holders[i].file);
		free(verdicts->holders[i].use.operator);
		for (size_t k = 0; k < verdicts->holders[i].n_blocks; k++) {
			free(verdicts->holders[i].blocks[k].name);
			free(verdicts->holders[i].blocks[k].type);
			free(verdicts->holders[i].blocks[k].table_module);
		}
		free(verdicts->holders[i].blocks);
	}
	free(verdicts->holders);
	verdicts->holders = NULL;
	verdicts->n_holders = 0;
}

static void free_python(struct recorded_python_heap *heap)
{
	for (size_t i = 0; i < heap->n_types; i++)
		free(heap->types[i].name);
	for (size_t i = 0; i < heap->n_owners; i++) {
		free(heap->owners[i].name);
		free(heap->owners[i].type);
		free(heap->owners[i].file);
	}
	free(heap->types);
	free(heap->owners);
	*heap = (struct recorded_python_heap){0};
}

static void clear_rows(struct recorded_verdicts *verdicts)
{
	torsh_load_clear_rows(&verdicts->rows);
	free(verdicts->further);
	verdicts->further = NULL;
	verdicts->n_further = verdicts->further_room = 0;
}

void torsh_load_forget_verdicts(struct recorded_verdicts *verdicts)
{
	free_holders(verdicts);
	free_python(&verdicts->python);
	free(verdicts->reason);
	clear_rows(verdicts);
}

static char *text_or_null(const char *text)
{
	return *text ? torsh_need(strdup(text)) : NULL;
}

static char *copy_or_null(const char *text)
{
	return text ? torsh_need(strdup(text)) : NULL;
}

static void load_holder(struct recorded_holder *holder, const Torsh__Holder *row)
{
	size_t n = row->n_block_stack == row->n_block_bytes ? row->n_block_stack : 0;
	bool is_named = row->n_block_name == n && row->n_block_type == n;
	bool has_tables = row->n_block_table_module == n && row->n_block_table == n;

	*holder = (struct recorded_holder){
		.stack = row->stack,
		.root = (enum root_of_blocks)row->root_kind,
		.path = copy_or_null(row->path),
		.address = row->address,
		.tid = row->tid,
		.variable = copy_or_null(row->variable),
		.function = copy_or_null(row->function),
		.file = copy_or_null(row->file),
		.line = row->line,
		.use = {.is_tensor = row->of_tensor,
			.has_reads = row->has_reads,
			.operator= copy_or_null(row->read_by),
			.read_ns = row->read_ns,
			.allocated_ns = row->allocated_ns,
			.read_step = row->read_step,
			.allocated_step = row->allocated_step,
			.step = row->step},
		.left_out = row->left_out,
		.blocks = torsh_need_items(NULL, 0, n, sizeof(*holder->blocks)),
		.n_blocks = n,
	};
	for (size_t i = 0; i < n; i++)
		holder->blocks[i] = (struct held_block){
			.stack = row->block_stack[i],
			.bytes = row->block_bytes[i],
			.name = is_named ? text_or_null(row->block_name[i]) : NULL,
			.type = is_named ? text_or_null(row->block_type[i]) : NULL,
			.table_module =
				has_tables ? text_or_null(row->block_table_module[i]) : NULL,
			.table = has_tables ? row->block_table[i] : 0,
		};
}

static void load_holders(struct recorded_verdicts *verdicts, const Torsh__Verdicts *row)
{
	if (!row->n_holder)
		return;
	free_holders(verdicts);
	verdicts->holders = torsh_need_items(NULL, 0, row->n_holder, sizeof(*verdicts->holders));
	verdicts->n_holders = row->n_holder;
	for (size_t i = 0; i < row->n_holder; i++)
		load_holder(&verdicts->holders[i], row->holder[i]);
}

static void load_types(struct recorded_python_heap *heap, const Torsh__PythonHeap *row)
{
	heap->n_types = row->n_type;
	heap->types = torsh_need_items(NULL, 0, heap->n_types, sizeof(*heap->types));
	for (size_t i = 0; i < heap->n_types; i++)
		heap->types[i] = (struct python_type_row){
			.name = torsh_need(strdup(row->type[i])),
			.objects = row->type_objects[i],
			.bytes = row->type_bytes[i],
			.lost_objects = row->type_lost_objects[i],
			.lost_bytes = row->type_lost_bytes[i],
		};
}

static void load_owners(struct recorded_python_heap *heap, const Torsh__PythonHeap *row)
{
	heap->n_owners = row->n_owner;
	heap->owners = torsh_need_items(NULL, 0, heap->n_owners, sizeof(*heap->owners));
	for (size_t i = 0; i < heap->n_owners; i++)
		heap->owners[i] = (struct python_owner_row){
			.name = torsh_need(strdup(row->owner[i])),
			.type = torsh_need(strdup(row->owner_type[i])),
			.file = text_or_null(row->owner_file[i]),
			.objects = row->owner_objects[i],
			.bytes = row->owner_bytes[i],
		};
}

static void load_python(struct recording *recording, struct recorded_python_heap *heap,
			const Torsh__PythonHeap *row)
{
	if (!row)
		return;
	if (row->n_type_objects != row->n_type || row->n_type_bytes != row->n_type ||
	    row->n_type_lost_objects != row->n_type || row->n_type_lost_bytes != row->n_type ||
	    row->n_owner_type != row->n_owner || row->n_owner_file != row->n_owner ||
	    row->n_owner_objects != row->n_owner || row->n_owner_bytes != row->n_owner) {
		recording->n_bad_rows++;
		return;
	}
	free_python(heap);
	*heap = (struct recorded_python_heap){
		.is_there = true,
		.at_ns = row->at_ns,
		.pool_bytes = row->pool_bytes,
		.pool_used_bytes = row->pool_used_bytes,
		.objects = row->objects,
		.bytes = row->bytes,
	};
	load_types(heap, row);
	load_owners(heap, row);
}

static void begin_verdicts(struct recorded_verdicts *verdicts, const Torsh__Verdicts *row)
{
	/* A large table comes in several messages with the same time. */
	if (!verdicts->is_tried || row->at_ns != verdicts->at_ns)
		clear_rows(verdicts);
	verdicts->is_tried = true;
	verdicts->is_judged = !row->reason;
	verdicts->has_begin = row->has_begin;
	verdicts->at_ns = row->at_ns;
	verdicts->stopped_ns = row->stopped_ns;
	verdicts->read_bytes = row->read_bytes;
	verdicts->n_threads = row->threads;
	torsh_load_text(&verdicts->reason, row->reason);
}

/* Returns the stack's verdict of the class, which is added if it is new. */
static struct recorded_verdict *verdict_of(struct recorded_verdicts *verdicts,
					   struct recorded_verdict *first, uint32_t block_class)
{
	struct recorded_verdict *verdict = first;

	if (!first->blocks && !first->bytes && !first->next)
		first->block_class = block_class & 7;
	while (verdict->block_class != block_class && verdict->next)
		verdict = &verdicts->further[verdict->next - 1];
	if (verdict->block_class == block_class)
		return verdict;
	/* The new one is the second: that may move the others. */
	verdicts->further = torsh_array_reserve(verdicts->further, verdicts->n_further,
						&verdicts->further_room, sizeof(*verdict));
	verdict = &verdicts->further[verdicts->n_further++];
	*verdict = (struct recorded_verdict){
		.stack = first->stack,
		.block_class = block_class & 7,
		.next = first->next,
	};
	first->next = verdicts->n_further & ((1u << 29) - 1);
	return verdict;
}

void torsh_load_verdicts(struct recording *recording, const Torsh__Verdicts *row)
{
	struct recorded_process *process = torsh_load_process_of(recording, row->process);
	size_t n = row->n_stack;

	if (!process)
		return;
	if (row->n_verdict != n || row->n_blocks != n || row->n_bytes != n) {
		recording->n_bad_rows++;
		return;
	}
	begin_verdicts(&process->verdicts, row);
	load_holders(&process->verdicts, row);
	load_python(recording, &process->verdicts.python, row->python);
	for (size_t i = 0; i < n; i++) {
		struct recorded_verdict *verdict =
			torsh_load_row(recording, process, &process->verdicts.rows, row->stack[i],
				       sizeof(*verdict));

		if (!verdict || row->verdict[i] >= N_BLOCK_CLASSES)
			continue;
		verdict = verdict_of(&process->verdicts, verdict, row->verdict[i]);
		verdict->blocks = row->blocks[i];
		verdict->bytes = row->bytes[i];
	}
}
