/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The decoder of events_columns.h. The bytes come from a file: an impossible value gives -EPROTO.
 */
#include <stdbool.h>
#include <errno.h>
#include <stdlib.h>

#include "agent/wire/codec.h"
#include "tools/store/columns_bytes.h"
#include "tools/store/events_model.h"

struct columns_reader {
	struct events_model model;
	struct column_reader columns[N_COLUMNS];
	uint32_t n_left;
};

/* The columns' lengths must add up to the number of bytes available. */
static int split_columns(struct columns_reader *reader, const uint8_t *bytes, size_t n_bytes)
{
	struct column_reader all = {.at = bytes, .end = bytes + n_bytes};
	uint64_t lengths[N_COLUMNS];

	for (int i = 0; i < N_COLUMNS; i++)
		lengths[i] = torsh_bytes_take_varint(&all);
	for (int i = 0; i < N_COLUMNS; i++) {
		reader->columns[i].at = torsh_bytes_take(&all, lengths[i]);
		if (all.is_short)
			return -EPROTO;
		reader->columns[i].end = reader->columns[i].at + lengths[i];
	}
	return all.at == all.end ? 0 : -EPROTO;
}

int torsh_columns_open(struct columns_reader **reader, uint64_t first_ns, uint32_t n_events,
		       const uint8_t *bytes, size_t n_bytes)
{
	struct columns_reader *opened;

	if (n_events > COLUMNS_EVENTS_MAX || n_events > n_bytes)
		return -EPROTO;
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return -ENOMEM;
	opened->n_left = n_events;
	torsh_model_start(&opened->model, first_ns / COLUMNS_STEP_NS);
	if (split_columns(opened, bytes, n_bytes)) {
		free(opened);
		return -EPROTO;
	}
	*reader = opened;
	return 0;
}

void torsh_columns_close(struct columns_reader *reader)
{
	if (!reader)
		return;
	torsh_model_free(&reader->model);
	free(reader);
}

static uint64_t take(struct columns_reader *reader, enum column column)
{
	return torsh_bytes_take_varint(&reader->columns[column]);
}

static uint64_t take_near(struct columns_reader *reader, enum column column, uint64_t *near)
{
	*near += torsh_bytes_unzigzag(take(reader, column));
	return *near << 4;
}

static void take_shape(struct columns_reader *reader, uint32_t op, uint32_t stack,
		       struct event_alloc *alloc)
{
	const struct model_shape *guess = torsh_model_shape(&reader->model, stack);
	uint64_t shape, surplus = guess->surplus;

	alloc->size = guess->size;
	alloc->entry = guess->entry;
	if (op & OP_SHAPE) {
		alloc->size = take(reader, COLUMN_SIZE);
		shape = take(reader, COLUMN_SHAPE);
		alloc->entry = (uint32_t)(shape >> 1);
		surplus = shape & 1 ? torsh_bytes_unzigzag(take(reader, COLUMN_SHAPE)) : 0;
	}
	alloc->usable = torsh_codec_expected_usable(alloc->size) + surplus;
}

static int take_alloc(struct columns_reader *reader, uint32_t op, struct columns_event *event)
{
	struct events_model *model = &reader->model;
	struct event_alloc *alloc = &event->event.alloc;
	enum op_address how = op >> OP_ADDRESS_SHIFT & OP_ADDRESS;

	event->event.id = EVENT_ALLOC;
	event->stack = torsh_model_stack(model);
	if (op & OP_STACK)
		event->stack += (uint32_t)torsh_bytes_unzigzag(take(reader, COLUMN_STACK));
	take_shape(reader, op, event->stack, alloc);
	switch (how) {
	case OP_ADDRESS_LISTED:
		alloc->address = torsh_model_listed(model, alloc->usable);
		break;
	case OP_ADDRESS_NEXT:
		alloc->address = torsh_model_next(model, alloc->entry);
		break;
	case OP_ADDRESS_NEAR:
		alloc->address = take_near(reader, COLUMN_ADDRESS, &model->near_alloc);
		break;
	case OP_ADDRESS_WHOLE:
		alloc->address = torsh_bytes_take_u64(&reader->columns[COLUMN_ADDRESS]);
		break;
	}
	/* An empty free list has no head. */
	if (!alloc->address || alloc->entry >= N_ALLOC_ENTRIES)
		return -EPROTO;
	return torsh_model_alloc(model, alloc, event->stack, how);
}

/* Returns the number of an allocation in this message, or the number for none. */
static uint32_t freed_number(struct columns_reader *reader, enum op_freed how)
{
	uint32_t n = reader->model.n_blocks, last = torsh_model_thread(&reader->model)->freed;
	uint64_t back = how;

	if (how == OP_FREED_AFTER)
		return last ? last : UINT32_MAX;
	if (how == OP_FREED_BEFORE)
		return last > 1 ? last - 2 : UINT32_MAX;
	if (how == OP_FREED_BACK)
		back = take(reader, COLUMN_FREED);
	return back < n ? n - 1 - (uint32_t)back : UINT32_MAX;
}

static int take_free(struct columns_reader *reader, uint32_t op, struct columns_event *event)
{
	enum op_freed how = op >> OP_FREED_SHIFT;
	bool is_realloc = (op & OP_KIND) == OP_REALLOC_BEGIN;
	uint32_t number = UINT32_MAX;
	uint64_t address;

	event->event.id = is_realloc ? EVENT_REALLOC_BEGIN : EVENT_FREE;
	if (how == OP_FREED_NEAR) {
		address = take_near(reader, COLUMN_FREED, &reader->model.near_free);
	} else if (how == OP_FREED_WHOLE) {
		address = torsh_bytes_take_u64(&reader->columns[COLUMN_FREED]);
	} else {
		number = freed_number(reader, how);
		if (number >= reader->model.n_blocks)
			return -EPROTO;
		address = reader->model.blocks[number].address;
	}
	event->event.free.address = address;
	torsh_model_free_block(&reader->model, number, address, is_realloc);
	return 0;
}

/* Rewrite the event as a cold event of a ring, so that the ring's decoder unpacks it. */
static int take_cold(struct columns_reader *reader, struct columns_event *event)
{
	struct column_reader *column = &reader->columns[COLUMN_COLD];
	uint8_t bytes[CODEC_PAYLOAD_MAX + 32];
	const uint8_t *payload;
	struct codec codec;
	struct codec_stack stack;
	uint64_t id = torsh_bytes_take_varint(column), n;
	uint8_t *end;

	event->stack = (uint32_t)torsh_bytes_take_varint(column);
	n = torsh_bytes_take_varint(column);
	if (id < 8 || id >= EVENT_ID_END || id == EVENT_STACK || n > CODEC_PAYLOAD_MAX)
		return -EPROTO;
	payload = torsh_bytes_take(column, n);
	if (!payload)
		return -EPROTO;
	torsh_codec_start(&codec, 0);
	end = torsh_codec_put_cold(&codec, bytes, 0, (uint32_t)id, payload, (uint32_t)n);
	return torsh_codec_decode(&codec, bytes, (size_t)(end - bytes), &event->event, &stack) > 0
		       ? 0
		       : -EPROTO;
}

static bool is_short(const struct columns_reader *reader)
{
	int result = 0;

	for (int i = 0; i < N_COLUMNS; i++)
		result |= reader->columns[i].is_short;
	return result;
}

/* Reject times beyond the range of nanoseconds. */
static int move_time(struct columns_reader *reader)
{
	uint64_t steps = take(reader, COLUMN_TIME);

	if (steps > UINT64_MAX / COLUMNS_STEP_NS - reader->model.step)
		return -EPROTO;
	reader->model.step += steps;
	return 0;
}

int torsh_columns_next(struct columns_reader *reader, struct columns_event *event)
{
	const uint8_t *op;
	int result;

	if (!reader->n_left)
		return 0;
	op = torsh_bytes_take(&reader->columns[COLUMN_OP], 1);
	if (!op)
		return -EPROTO;
	if (*op & OP_TIME && move_time(reader))
		return -EPROTO;
	if (*op & OP_THREAD)
		reader->model.thread = (uint32_t)take(reader, COLUMN_THREAD);
	*event = (struct columns_event){
		.at_ns = reader->model.step * COLUMNS_STEP_NS,
		.thread = reader->model.thread,
	};
	switch (*op & OP_KIND) {
	case OP_ALLOC:
		result = take_alloc(reader, *op, event);
		break;
	case OP_COLD:
		result = take_cold(reader, event);
		break;
	default:
		result = take_free(reader, *op, event);
		break;
	}
	if (result || is_short(reader))
		return result ? result : -EPROTO;
	reader->n_left--;
	return 1;
}
