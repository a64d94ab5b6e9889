/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/store/events_model.h"

#include <stdbool.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"

#include "agent/wire/codec.h"

void torsh_model_start(struct events_model *model, uint64_t first_step)
{
	struct model_block *blocks = model->blocks;
	uint32_t capacity = model->block_capacity;

	memset(model, 0, sizeof(*model));
	model->blocks = blocks;
	model->block_capacity = capacity;
	model->step = first_step;
}

void torsh_model_free(struct events_model *model)
{
	free(model->blocks);
}

/* Size classes: multiples of 16 bytes up to 1 KiB, powers of two above. */
static uint32_t class_of(uint64_t usable)
{
	if (usable < 1024)
		return (uint32_t)(usable >> 4);
	return 64 + (uint32_t)(63 - __builtin_clzll(usable)) % 16;
}

uint64_t torsh_model_listed(const struct events_model *model, uint64_t usable)
{
	const struct model_list *list = &model->lists[class_of(usable)];

	return list->n_held ? list->addresses[(list->n - 1) % MODEL_LISTED] : 0;
}

static void pop_listed(struct events_model *model, uint64_t usable)
{
	struct model_list *list = &model->lists[class_of(usable)];

	list->n--;
	list->n_held--;
}

static void push_listed(struct events_model *model, uint64_t address, uint64_t usable)
{
	struct model_list *list = &model->lists[class_of(usable)];

	list->addresses[list->n++ % MODEL_LISTED] = address;
	if (list->n_held < MODEL_LISTED)
		list->n_held++;
}

uint64_t torsh_model_next(struct events_model *model, uint32_t entry)
{
	uint64_t old = torsh_model_thread(model)->old;

	return entry == ALLOC_REALLOC && old ? old : model->next;
}

static int add_block(struct events_model *model, const struct event_alloc *alloc)
{
	if (model->n_blocks == model->block_capacity) {
		struct model_block *larger =
			torsh_array_try_grow(model->blocks, model->n_blocks + 1,
					     &model->block_capacity, sizeof(*larger));

		if (!larger)
			return -ENOMEM;
		model->blocks = larger;
	}
	model->blocks[model->n_blocks++] =
		(struct model_block){.address = alloc->address, .usable = alloc->usable};
	return 0;
}

int torsh_model_alloc(struct events_model *model, const struct event_alloc *alloc, uint32_t stack,
		      enum op_address how)
{
	struct model_thread *thread = torsh_model_thread(model);

	bool is_move = alloc->entry == ALLOC_REALLOC && thread->old;

	if (how == OP_ADDRESS_LISTED)
		pop_listed(model, alloc->usable);
	else if (!is_move || thread->old != alloc->address)
		model->next = (alloc->address + alloc->usable + 15 + 8) & ~UINT64_C(15);
	/* realloc frees the old block only if the new one is elsewhere. */
	if (is_move && thread->old != alloc->address && thread->old_usable)
		push_listed(model, thread->old, thread->old_usable);
	if (is_move)
		thread->old = 0;
	model->successor[thread->stack % MODEL_SLOTS] = stack;
	thread->stack = stack;
	*torsh_model_shape(model, stack) = (struct model_shape){
		.size = alloc->size,
		.surplus = alloc->usable - torsh_codec_expected_usable(alloc->size),
		.entry = alloc->entry,
	};
	return add_block(model, alloc);
}

void torsh_model_free_block(struct events_model *model, uint32_t block, uint64_t address,
			    bool is_realloc)
{
	struct model_thread *thread = torsh_model_thread(model);
	uint64_t usable = block < model->n_blocks ? model->blocks[block].usable : 0;

	if (block < model->n_blocks)
		thread->freed = block + 1;
	if (is_realloc) {
		thread->old = address;
		thread->old_usable = usable;
	} else if (usable) {
		push_listed(model, address, usable);
	}
}
