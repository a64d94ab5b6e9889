/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/device/owners/tensor_lives.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

#define BLOCK_GRANULE UINT64_C(512)
#define SPLIT_MIN (UINT64_C(1) << 20) /* larger blocks may have up to so much that isn't used */

void torsh_tensor_lives_add(struct tensor_lives *lives, const struct tensor_of_owner *tensor)
{
	lives->items =
		torsh_array_reserve(lives->items, lives->n, &lives->n_room, sizeof(*lives->items));
	lives->items[lives->n++] = *tensor;
}

void torsh_tensor_lives_free(struct tensor_lives *lives)
{
	free(lives->items);
}

/* ---- what an operator got -------------------------------------------------------------------- */

static bool can_hold(uint64_t block_bytes, uint64_t bytes)
{
	uint64_t rounded = (bytes + BLOCK_GRANULE - 1) / BLOCK_GRANULE * BLOCK_GRANULE;

	return bytes && rounded <= block_bytes &&
	       (rounded == block_bytes ||
		(block_bytes > SPLIT_MIN && block_bytes - rounded <= SPLIT_MIN));
}

/*
 * Whether it is a parameter's shape, with elements of some size that fill the block; counters of
 * batches, which are buffers, have no dimensions.
 */
static bool fits_parameter(const struct batch *batch, const struct shape *shape,
			   uint64_t block_bytes)
{
	uint64_t n = torsh_shape_elements(shape);

	if (shape->n && !torsh_batch_is_parameter(batch, shape))
		return false;
	for (uint64_t item_bytes = 1; item_bytes <= 8; item_bytes *= 2) {
		if (can_hold(block_bytes, n * item_bytes))
			return true;
	}
	return false;
}

/* The shape that a factory gets as a list of numbers; false: it is none. */
static bool read_list(const struct inputs *inputs, uint32_t at, struct shape *shape)
{
	const struct input *list = &inputs->items[at];

	shape->n = 0;
	if (list->kind != INPUT_LIST || list->n_items > INPUT_DIMS_MAX)
		return false;
	for (uint32_t i = 1; i <= list->n_items; i++) {
		if (inputs->items[at + i].kind != INPUT_INTEGER)
			return false;
		shape->dims[shape->n++] = inputs->items[at + i].integer;
	}
	return shape->n > 0;
}

static void see_input(struct tensor_lives *lives, struct tensor_of_owner *tensor, uint32_t at)
{
	const struct input *input = &lives->inputs->items[at];
	struct tensor_life *life = &tensor->life;
	struct shape shape;

	if (input->kind == INPUT_TENSOR) {
		if (memchr(input->text, '@', input->n_text))
			life->source = FROM_DEVICE;
		else if (life->source == FROM_NOTHING)
			life->source = FROM_HOST;
		shape = torsh_shape_of(input);
	} else if (!read_list(lives->inputs, at, &shape)) {
		return;
	}
	life->has_parameter_shape |= fits_parameter(lives->batch, &shape, tensor->bytes);
}

/* Of an operator and those around it. */
static void see_operators(struct tensor_lives *lives, struct tensor_of_owner *tensor,
			  const struct span *innermost)
{
	for (const struct span *span = innermost; span; span = torsh_span_outer_operator(span)) {
		if (span->scope == OP_USER)
			continue;
		torsh_inputs_parse(lives->inputs,
				   torsh_timeline_label(span->process, span->inputs));
		for (uint32_t i = 0; i < lives->inputs->n_items; i++)
			see_input(lives, tensor, i);
	}
}

/* ---- where ----------------------------------------------------------------------------------- */

/* Returns the first pass that ends after that time. */
static size_t pass_after(const struct recorded_process *process, uint64_t at_ns)
{
	size_t low = 0, high = process->n_passes;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (process->passes[middle].end_ns <= at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Returns the number of passes that began before that time. */
static size_t passes_before(const struct recorded_process *process, uint64_t at_ns)
{
	size_t i = pass_after(process, at_ns);

	return i + (i < process->n_passes && process->passes[i].start_ns <= at_ns);
}

static struct tensor_moment moment_at(const struct recorded_process *process, uint64_t at_ns,
				      const struct span *innermost)
{
	struct tensor_moment moment = {.at_ns = at_ns, .pass = PASS_NONE};
	size_t pass = pass_after(process, at_ns);

	if (pass < process->n_passes && process->passes[pass].start_ns <= at_ns)
		moment.pass = pass;
	for (const struct span *span = innermost; span; span = torsh_span_outer_operator(span)) {
		if (span->scope != OP_USER)
			moment.call = span->ordinal + 1;
		if (span->traits & NAME_OPTIMIZER_STEP)
			moment.update = span->ordinal + 1;
	}
	if (innermost)
		moment.phase = innermost->phase;
	else if (moment.pass != PASS_NONE)
		moment.phase = PHASE_BACKWARD;
	else
		moment.phase = at_ns < process->setup_end_ns ? PHASE_SETUP : PHASE_FORWARD;
	return moment;
}

/* Returns the ordinal + 1 of the outermost module's call around; 0: none. */
static uint64_t module_around(const struct span *innermost)
{
	const struct span *module = innermost ? torsh_span_outer_module(innermost) : NULL;

	for (const struct span *outer; module && (outer = torsh_span_outer_module(module));)
		module = outer;
	return module ? module->ordinal + 1 : 0;
}

static bool is_open(const struct tensor_lives *lives, uint64_t module)
{
	for (size_t i = 0; i < lives->n_open; i++) {
		if (lives->open[i] == module)
			return true;
	}
	return false;
}

/* Whether autograd's node made it, not the program's code that the node calls. */
static bool is_of_backward(const struct span *innermost)
{
	for (const struct span *span = innermost; span; span = torsh_span_outer_operator(span)) {
		if (span->scope == OP_BACKWARD || span->traits & NAME_BACKWARD)
			return true;
	}
	return false;
}

static void see_alloc(struct tensor_lives *lives, size_t number, const struct timeline_event *event,
		      const struct span *innermost)
{
	struct tensor_of_owner *tensor = &lives->items[number];
	const struct span *span = torsh_span_attributed(innermost);
	struct tensor_life *life = &tensor->life;

	life->made = moment_at(lives->process, event->at_ns, innermost);
	life->has_operator = innermost != NULL;
	if (!innermost)
		return;
	lives->modules[number] = module_around(innermost);
	life->is_in_module = lives->modules[number];
	life->has_graph = span->sequence != OP_NO_SEQUENCE;
	life->is_first_gradient =
		!life->is_in_module && strcmp(torsh_span_name(span), "aten::ones_like") == 0;
	life->is_of_backward =
		is_of_backward(innermost) && (span->scope == OP_BACKWARD || !life->has_graph);
	tensor->operator_name = torsh_span_name(span);
	tensor->module = torsh_timeline_label(lives->process, span->module);
	see_operators(lives, tensor, innermost);
}

static void see_free(struct tensor_lives *lives, size_t number, const struct timeline_event *event,
		     const struct span *innermost)
{
	struct tensor_life *life = &lives->items[number].life;

	life->freed = moment_at(lives->process, event->at_ns, innermost);
	life->is_freed = true;
	life->is_module_over = life->is_in_module && !is_open(lives, lives->modules[number]);
	life->n_passes = passes_before(lives->process, life->freed.at_ns) -
			 passes_before(lives->process, life->made.at_ns);
}

/* ---- the pass -------------------------------------------------------------------------------- */

struct change {
	uint64_t address;
	bool is_free, is_block;
};

/* Returns false if the event is about no memory of the device. */
static bool read_change(const struct tensor_lives *lives, const struct event *event,
			struct change *change)
{
	switch (event->id) {
	case EVENT_TENSOR:
		*change = (struct change){.address = event->tensor.address,
					  .is_free = event->tensor.is_free != 0};
		return event->tensor.device == lives->device;
	case EVENT_DEVICE_ALLOC:
		*change = (struct change){.address = event->device_alloc.address, .is_block = true};
		return event->device_alloc.kind == BLOCK_DEVICE;
	case EVENT_DEVICE_FREE:
		*change = (struct change){
			.address = event->device_free.address, .is_free = true, .is_block = true};
		return event->device_free.kind == BLOCK_DEVICE;
	default:
		return false;
	}
}

static void see_event(void *context, const struct recorded_process *process,
		      const struct timeline_event *event, struct span *innermost)
{
	struct tensor_lives *lives = context;
	const struct hash_entry *entry;
	struct tensor_of_owner *found;
	struct change change;

	if (process != lives->process || !read_change(lives, &event->event, &change))
		return;
	entry = torsh_hash_map_find(&lives->by_address, &change.address, sizeof(change.address));
	if (!entry || lives->items[entry->value].is_block != change.is_block)
		return;
	found = &lives->items[entry->value];
	/* Its address may have belonged to others before and after. */
	if (!change.is_free && event->at_ns == found->made_ns)
		see_alloc(lives, entry->value, event, innermost);
	else if (found->life.made.at_ns && !found->life.is_freed)
		see_free(lives, entry->value, event, innermost);
}

static void see_begin(void *context, struct span *span)
{
	struct tensor_lives *lives = context;

	if (!span->is_module || span->process != lives->process || torsh_span_outer_module(span))
		return;
	lives->open = torsh_array_reserve(lives->open, lives->n_open, &lives->open_room,
					  sizeof(*lives->open));
	lives->open[lives->n_open++] = span->ordinal + 1;
}

static void see_end(void *context, struct span *span)
{
	struct tensor_lives *lives = context;

	for (size_t i = 0; span->is_module && i < lives->n_open; i++) {
		if (lives->open[i] == span->ordinal + 1)
			lives->open[i] = lives->open[--lives->n_open];
	}
}

/* What was never freed was kept through all passes that followed. */
static void end_lives(struct tensor_lives *lives)
{
	for (size_t i = 0; i < lives->n; i++) {
		struct tensor_life *life = &lives->items[i].life;

		if (life->is_freed)
			continue;
		life->is_module_over = life->is_in_module && !is_open(lives, lives->modules[i]);
		life->n_passes =
			lives->process->n_passes - passes_before(lives->process, life->made.at_ns);
	}
}

void torsh_tensor_lives_collect(struct tensor_lives *lives, const struct recording *recording,
				const struct prepass *prepass, const struct batch *batch)
{
	static const struct span_visitor visitor = {
		.begin = see_begin, .end = see_end, .event = see_event};
	struct recorded_process *one[1] = {(struct recorded_process *)lives->process};
	int rc;

	lives->batch = batch;
	lives->inputs = torsh_need_items(NULL, 0, 1, sizeof(*lives->inputs));
	lives->modules = torsh_need_items(NULL, 0, lives->n, sizeof(*lives->modules));
	for (size_t i = 0; i < lives->n; i++)
		torsh_hash_map_put(&lives->by_address, &lives->items[i].address,
				   sizeof(lives->items[i].address), i);
	rc = torsh_spans_visit(recording, one, 1, prepass->unnested, NULL, &visitor, lives, NULL);
	if (rc < 0)
		torsh_die("can't read the timeline of %s: %s", recording->path, strerror(-rc));
	end_lives(lives);
	torsh_hash_map_free(&lives->by_address);
	free(lives->modules);
	free(lives->open);
	free(lives->inputs);
}
