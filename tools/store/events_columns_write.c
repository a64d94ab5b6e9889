/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The encoder of events_columns.h.
 */
#include <stdbool.h>
#include <errno.h>
#include <stdlib.h>

#include "agent/wire/codec.h"
#include "tools/store/columns_bytes.h"
#include "tools/store/events_model.h"

#define ROOM 128u /* room in each column, for more than one event */

/*
 * Maps the address of a block of this message to its number, with open addressing; emptied for
 * each message.
 */
struct block_slot {
	uint64_t address;
	uint32_t number;
};

struct columns_writer {
	struct events_model model;
	struct column_bytes columns[N_COLUMNS];
	struct block_slot *blocks;
	uint32_t block_mask, n_block_slots;
	uint32_t n_events;
	uint64_t first_ns;
};

struct columns_writer *torsh_columns_create(void)
{
	return calloc(1, sizeof(struct columns_writer));
}

void torsh_columns_destroy(struct columns_writer *writer)
{
	if (!writer)
		return;
	for (int i = 0; i < N_COLUMNS; i++)
		free(writer->columns[i].bytes);
	torsh_model_free(&writer->model);
	free(writer->blocks);
	free(writer);
}

uint32_t torsh_columns_count(const struct columns_writer *writer)
{
	return writer->n_events;
}

static struct block_slot *find_slot(const struct columns_writer *writer, uint64_t address)
{
	uint32_t i =
		(uint32_t)((address * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & writer->block_mask;

	while (writer->blocks[i].address && writer->blocks[i].address != address)
		i = (i + 1) & writer->block_mask;
	return &writer->blocks[i];
}

static int grow_slots(struct columns_writer *writer)
{
	struct columns_writer larger = {.block_mask = writer->blocks ? writer->block_mask * 2 + 1
								     : 0xffff};

	larger.blocks = calloc((size_t)larger.block_mask + 1, sizeof(*larger.blocks));
	if (!larger.blocks)
		return -ENOMEM;
	for (uint32_t i = 0; writer->blocks && i <= writer->block_mask; i++) {
		if (writer->blocks[i].address)
			*find_slot(&larger, writer->blocks[i].address) = writer->blocks[i];
	}
	free(writer->blocks);
	writer->blocks = larger.blocks;
	writer->block_mask = larger.block_mask;
	return 0;
}

/* Freed blocks stay in the table: a later block at the same address replaces them. */
static void remember_block(struct columns_writer *writer, uint64_t address, uint32_t number)
{
	struct block_slot *slot = find_slot(writer, address);

	writer->n_block_slots += !slot->address;
	*slot = (struct block_slot){.address = address, .number = number};
}

static void put(struct columns_writer *writer, enum column column, uint64_t value)
{
	torsh_bytes_put_varint(&writer->columns[column], value);
}

static void put_u64(struct columns_writer *writer, enum column column, uint64_t value)
{
	torsh_bytes_put(&writer->columns[column], &value, 8);
}

static uint32_t put_shape(struct columns_writer *writer, const struct event_alloc *alloc,
			  uint32_t stack)
{
	const struct model_shape *guess = torsh_model_shape(&writer->model, stack);
	uint64_t surplus = alloc->usable - torsh_codec_expected_usable(alloc->size);

	if (guess->size == alloc->size && guess->surplus == surplus && guess->entry == alloc->entry)
		return 0;
	put(writer, COLUMN_SIZE, alloc->size);
	put(writer, COLUMN_SHAPE, alloc->entry << 1 | (surplus != 0));
	if (surplus)
		put(writer, COLUMN_SHAPE, torsh_bytes_zigzag(surplus));
	return OP_SHAPE;
}

static enum op_address put_address(struct columns_writer *writer, const struct event_alloc *alloc)
{
	struct events_model *model = &writer->model;
	uint64_t unit = alloc->address >> 4;

	if (torsh_model_listed(model, alloc->usable) == alloc->address)
		return OP_ADDRESS_LISTED;
	if (torsh_model_next(model, alloc->entry) == alloc->address)
		return OP_ADDRESS_NEXT;
	if (alloc->address & 15) {
		put_u64(writer, COLUMN_ADDRESS, alloc->address);
		return OP_ADDRESS_WHOLE;
	}
	put(writer, COLUMN_ADDRESS, torsh_bytes_zigzag(unit - model->near_alloc));
	model->near_alloc = unit;
	return OP_ADDRESS_NEAR;
}

static int add_alloc(struct columns_writer *writer, const struct columns_event *event, uint32_t *op)
{
	struct events_model *model = &writer->model;
	const struct event_alloc *alloc = &event->event.alloc;
	uint32_t guess = torsh_model_stack(model);
	enum op_address how;
	int result;

	*op |= OP_ALLOC;
	if (event->stack != guess) {
		*op |= OP_STACK;
		put(writer, COLUMN_STACK, torsh_bytes_zigzag((uint64_t)event->stack - guess));
	}
	*op |= put_shape(writer, alloc, event->stack);
	how = put_address(writer, alloc);
	*op |= (uint32_t)how << OP_ADDRESS_SHIFT;
	result = torsh_model_alloc(model, alloc, event->stack, how);
	if (result)
		return result;
	remember_block(writer, alloc->address, model->n_blocks - 1);
	return 0;
}

/* A block that was allocated before this message. */
static enum op_freed put_foreign(struct columns_writer *writer, uint64_t address)
{
	uint64_t unit = address >> 4;

	if (address & 15) {
		put_u64(writer, COLUMN_FREED, address);
		return OP_FREED_WHOLE;
	}
	put(writer, COLUMN_FREED, torsh_bytes_zigzag(unit - writer->model.near_free));
	writer->model.near_free = unit;
	return OP_FREED_NEAR;
}

static enum op_freed put_freed(struct columns_writer *writer, uint32_t number)
{
	uint32_t back = writer->model.n_blocks - 1 - number,
		 last = torsh_model_thread(&writer->model)->freed;

	if (back < OP_FREED_AFTER)
		return (enum op_freed)back;
	if (last && number == last)
		return OP_FREED_AFTER;
	if (last && number + 2 == last)
		return OP_FREED_BEFORE;
	put(writer, COLUMN_FREED, back);
	return OP_FREED_BACK;
}

static void add_free(struct columns_writer *writer, uint64_t address, bool is_realloc, uint32_t *op)
{
	const struct block_slot *slot = address ? find_slot(writer, address) : NULL;
	bool is_known = slot && slot->address;
	uint32_t number = is_known ? slot->number : UINT32_MAX;
	enum op_freed how = is_known ? put_freed(writer, number) : put_foreign(writer, address);

	*op |= (is_realloc ? OP_REALLOC_BEGIN : OP_FREE) | (uint32_t)how << OP_FREED_SHIFT;
	torsh_model_free_block(&writer->model, number, address, is_realloc);
}

static void add_cold(struct columns_writer *writer, const struct columns_event *event, uint32_t *op)
{
	uint8_t payload[CODEC_PAYLOAD_MAX];
	uint32_t n = torsh_codec_pack(&event->event, payload);

	*op |= OP_COLD;
	put(writer, COLUMN_COLD, event->event.id);
	put(writer, COLUMN_COLD, event->stack);
	put(writer, COLUMN_COLD, n);
	torsh_bytes_put(&writer->columns[COLUMN_COLD], payload, n);
}

static int make_room(struct columns_writer *writer)
{
	int result = 0;

	for (int i = 0; i < N_COLUMNS && !result; i++)
		result = torsh_bytes_reserve(&writer->columns[i], ROOM);
	if (!result && (!writer->blocks || writer->n_block_slots > writer->block_mask / 2))
		result = grow_slots(writer);
	return result;
}

static uint32_t put_when_and_who(struct columns_writer *writer, const struct columns_event *event)
{
	uint64_t step = event->at_ns / COLUMNS_STEP_NS;
	uint32_t op = 0;

	if (step > writer->model.step) {
		op |= OP_TIME;
		put(writer, COLUMN_TIME, step - writer->model.step);
		writer->model.step = step;
	}
	if (event->thread != writer->model.thread) {
		op |= OP_THREAD;
		put(writer, COLUMN_THREAD, event->thread);
		writer->model.thread = event->thread;
	}
	return op;
}

int torsh_columns_add(struct columns_writer *writer, const struct columns_event *event)
{
	uint32_t op;
	int result;

	if (writer->n_events == COLUMNS_EVENTS_MAX)
		return -ENOSPC;
	result = make_room(writer);
	if (result)
		return result;
	if (!writer->n_events) {
		writer->first_ns = event->at_ns / COLUMNS_STEP_NS * COLUMNS_STEP_NS;
		torsh_model_start(&writer->model, event->at_ns / COLUMNS_STEP_NS);
	}
	op = put_when_and_who(writer, event);
	switch (event->event.id) {
	case EVENT_ALLOC:
		result = add_alloc(writer, event, &op);
		break;
	case EVENT_FREE:
	case EVENT_REALLOC_BEGIN:
		add_free(writer, event->event.free.address, event->event.id == EVENT_REALLOC_BEGIN,
			 &op);
		break;
	default:
		add_cold(writer, event, &op);
		break;
	}
	if (result)
		return result;
	torsh_bytes_put(&writer->columns[COLUMN_OP], &(uint8_t){(uint8_t)op}, 1);
	writer->n_events++;
	return 0;
}

/* Writes the lengths of all columns, then the columns. */
static int join_columns(const struct columns_writer *writer, struct column_bytes *joined)
{
	size_t n = 10 * N_COLUMNS;

	for (int i = 0; i < N_COLUMNS; i++)
		n += writer->columns[i].n;
	if (torsh_bytes_reserve(joined, n))
		return -ENOMEM;
	for (int i = 0; i < N_COLUMNS; i++)
		torsh_bytes_put_varint(joined, writer->columns[i].n);
	for (int i = 0; i < N_COLUMNS; i++) {
		if (writer->columns[i].n)
			torsh_bytes_put(joined, writer->columns[i].bytes, writer->columns[i].n);
	}
	return 0;
}

int torsh_columns_take(struct columns_writer *writer, uint64_t *first_ns, uint32_t *n_events,
		       uint8_t **bytes, size_t *n_bytes)
{
	struct column_bytes joined = {0};
	int result = join_columns(writer, &joined);

	*first_ns = writer->first_ns;
	*n_events = writer->n_events;
	*bytes = joined.bytes;
	*n_bytes = joined.n;
	for (int i = 0; i < N_COLUMNS; i++)
		writer->columns[i].n = 0;
	if (writer->blocks)
		memset(writer->blocks, 0,
		       ((size_t)writer->block_mask + 1) * sizeof(*writer->blocks));
	writer->n_block_slots = 0;
	writer->n_events = 0;
	return result;
}
