/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Tensors as a memory snapshot of PyTorch, for https://pytorch.org/memory_viz and
 * torch.cuda._memory_viz: allocations and frees on each device (device_traces), and the live
 * blocks at the end of the window (segments).
 *
 * A device belongs to one process; "devices" names them by number. Each block is shown as a
 * segment, because the allocator's segments are not recorded, and the CPU has none. The innermost
 * frame of a stack is the operator, with its module. One walk over the timeline per device; it
 * holds the device's live blocks, and the numbers of frames already written.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/containers/key_index.h"
#include "tools/base/containers/live_table.h"
#include "tools/base/device.h"
#include "tools/base/die.h"
#include "tools/export/exporter.h"
#include "tools/export/snapshot/pickle.h"
#include "tools/export/trace.h"
#include "tools/memory/tensors.h"
#include "tools/symbols/frame_text.h"
#include "tools/symbols/stack_view.h"

#define NS_PER_US 1000
#define DEVICES_MAX 256u /* of all processes; more are treated as damage */

/* What allocated a block: labels of an operator and its module. */
struct allocator {
	uint32_t name, module;
};

struct device {
	const struct recorded_process *process;
	uint32_t device; /* type << 8 | index */
	struct live_table live; /* site: the stack; stamp: number of the allocator */
	struct allocator *allocators; /* from 1; 0: no operator */
	size_t n_allocators, allocators_room;
	struct key_index numbers; /* keyed by operator and module */
	/* memo numbers of values already written: frames, and stacks with their allocator */
	struct key_index frames, stacks;
};

/* WORD(NAME, text): keys and values that occur often. */
#define WORDS                                  \
	WORD(ACTION, "action")                 \
	WORD(ADDR, "addr")                     \
	WORD(SIZE, "size")                     \
	WORD(STREAM, "stream")                 \
	WORD(TIME_US, "time_us")               \
	WORD(FRAMES, "frames")                 \
	WORD(NAME, "name")                     \
	WORD(FILENAME, "filename")             \
	WORD(LINE, "line")                     \
	WORD(ALLOC, "alloc")                   \
	WORD(FREE_REQUESTED, "free_requested") \
	WORD(FREE_COMPLETED, "free_completed") \
	WORD(SEGMENT_ALLOC, "segment_alloc")   \
	WORD(SEGMENT_FREE, "segment_free")     \
	WORD(ADDRESS, "address")               \
	WORD(DEVICE, "device")                 \
	WORD(STATE, "state")                   \
	WORD(BLOCKS, "blocks")                 \
	WORD(TOTAL_SIZE, "total_size")         \
	WORD(ALLOCATED_SIZE, "allocated_size") \
	WORD(ACTIVE_SIZE, "active_size")       \
	WORD(REQUESTED_SIZE, "requested_size") \
	WORD(ACTIVE_ALLOCATED, "active_allocated")

enum word {
#define WORD(NAME, text) WORD_##NAME,
	WORDS
#undef WORD
		N_WORDS
};

struct snapshot {
	struct trace *trace;
	struct pickle pickle;
	uint32_t words[N_WORDS]; /* memo number + 1; 0: not written yet */
	struct device *devices;
	size_t n_devices, devices_room;
	struct device *at; /* the device being written */
	struct pickle_list events;
};

/* ---- values that come again ------------------------------------------------------------------ */

static void put_word(struct snapshot *snapshot, enum word word)
{
	static const char *const strings[] = {
#define WORD(NAME, text) text,
		WORDS
#undef WORD
	};

	if (snapshot->words[word]) {
		torsh_pickle_again(&snapshot->pickle, snapshot->words[word] - 1);
		return;
	}
	torsh_pickle_text(&snapshot->pickle, strings[word]);
	snapshot->words[word] = torsh_pickle_remember(&snapshot->pickle) + 1;
}

static void put_entry(struct snapshot *snapshot, enum word key, uint64_t number)
{
	put_word(snapshot, key);
	torsh_pickle_number(&snapshot->pickle, number);
}

/* Refer to the memo of a key, if its value is written already. Returns false otherwise. */
static bool put_known(struct snapshot *snapshot, const struct key_slot *slot)
{
	if (slot->key)
		torsh_pickle_again(&snapshot->pickle, slot->number);
	return slot->key;
}

/* Store the value just written as the memo of the key. */
static void learn(struct snapshot *snapshot, struct key_index *index, uint64_t key)
{
	torsh_key_index_fill(index, torsh_key_index_find(index, key), key,
			     torsh_pickle_remember(&snapshot->pickle));
}

static void put_frame(struct snapshot *snapshot, const char *name, const char *file, int line)
{
	torsh_pickle_dict_begin(&snapshot->pickle);
	put_word(snapshot, WORD_NAME);
	torsh_pickle_text(&snapshot->pickle, name);
	put_word(snapshot, WORD_FILENAME);
	torsh_pickle_text(&snapshot->pickle, file);
	put_entry(snapshot, WORD_LINE, line > 0 ? (uint64_t)line : 0);
	torsh_pickle_dict_end(&snapshot->pickle);
}

static void put_stack_frame(struct snapshot *snapshot, const struct frame *frame)
{
	const char *file = frame->file ? frame->file : frame->module;
	uint64_t key = (uintptr_t)frame;
	char name[256];

	if (put_known(snapshot, torsh_key_index_find(&snapshot->at->frames, key)))
		return;
	put_frame(snapshot, torsh_frame_name(frame, name, sizeof(name)), file ? file : "",
		  frame->line);
	learn(snapshot, &snapshot->at->frames, key);
}

/* Returns the number of the event's operator and module. */
static uint32_t allocator_number(struct device *device, const struct span *span)
{
	struct key_slot *slot;
	uint64_t key;

	if (!span)
		return 0;
	key = ((uint64_t)span->name << 32 | span->module) + 1;
	slot = torsh_key_index_find(&device->numbers, key);
	if (slot->key)
		return slot->number;
	device->allocators =
		torsh_array_reserve(device->allocators, device->n_allocators,
				    &device->allocators_room, sizeof(*device->allocators));
	device->allocators[device->n_allocators++] =
		(struct allocator){.name = span->name, .module = span->module};
	torsh_key_index_fill(&device->numbers, slot, key, (uint32_t)device->n_allocators);
	return (uint32_t)device->n_allocators;
}

static void put_allocator(struct snapshot *snapshot, uint32_t number)
{
	const struct allocator *allocator = &snapshot->at->allocators[number - 1];
	const char *name = torsh_timeline_label(snapshot->at->process, allocator->name);
	const char *module = torsh_timeline_label(snapshot->at->process, allocator->module);

	put_frame(snapshot, name ? name : "?", module ? module : "operator", 0);
}

/* Put the frames of an event or a block: its allocator and its stack. */
static void put_frames(struct snapshot *snapshot, uint32_t stack, uint32_t allocator)
{
	uint64_t key = ((uint64_t)allocator << 32 | stack) + 1;
	const struct frame **frames;
	struct pickle_list list;
	size_t n;

	put_word(snapshot, WORD_FRAMES);
	if (put_known(snapshot, torsh_key_index_find(&snapshot->at->stacks, key)))
		return;
	torsh_pickle_list_begin(&snapshot->pickle, &list);
	if (allocator) {
		torsh_pickle_item(&snapshot->pickle, &list);
		put_allocator(snapshot, allocator);
	}
	frames = torsh_stack_frames(snapshot->at->process, stack, snapshot->trace->symbols,
				    STACK_VIEW_MERGED, &n);
	for (size_t i = 0; i < n; i++) {
		torsh_pickle_item(&snapshot->pickle, &list);
		put_stack_frame(snapshot, frames[i]);
	}
	free(frames);
	torsh_pickle_list_end(&snapshot->pickle, &list);
	learn(snapshot, &snapshot->at->stacks, key);
}

/* ---- what was allocated and freed ------------------------------------------------------------ */

/* An entry of a device's trace. */
static void put_event(struct snapshot *snapshot, enum word action,
		      const struct timeline_event *event, uint64_t bytes, uint32_t allocator)
{
	uint64_t at_ns = snapshot->trace->recording->start_realtime_ns + event->at_ns;

	torsh_pickle_item(&snapshot->pickle, &snapshot->events);
	torsh_pickle_dict_begin(&snapshot->pickle);
	put_word(snapshot, WORD_ACTION);
	put_word(snapshot, action);
	put_entry(snapshot, WORD_ADDR, event->event.tensor.address);
	put_entry(snapshot, WORD_SIZE, bytes);
	put_entry(snapshot, WORD_STREAM, 0);
	put_entry(snapshot, WORD_TIME_US, at_ns / NS_PER_US);
	put_frames(snapshot, event->stack, allocator);
	torsh_pickle_dict_end(&snapshot->pickle);
}

static void put_free(struct snapshot *snapshot, const struct timeline_event *event, uint64_t bytes,
		     uint32_t allocator)
{
	put_event(snapshot, WORD_FREE_REQUESTED, event, bytes, allocator);
	put_event(snapshot, WORD_FREE_COMPLETED, event, bytes, allocator);
	put_event(snapshot, WORD_SEGMENT_FREE, event, bytes, allocator);
}

/* An allocation before the window counts as a live block, but has no entry. */
static void take_alloc(struct snapshot *snapshot, const struct timeline_event *event,
		       uint32_t allocator)
{
	const struct event_tensor *tensor = &event->event.tensor;
	uint64_t bytes = tensor->bytes <= LIVE_SIZE_MAX ? tensor->bytes : LIVE_SIZE_MAX;
	bool is_shown = torsh_trace_has(snapshot->trace, event->at_ns);
	struct live_block old, block = {.address = tensor->address,
					.size = bytes,
					.stamp = allocator,
					.site = event->stack};

	/* The free of the older block was lost. */
	if (torsh_live_put(&snapshot->at->live, &block, &old) && is_shown)
		put_free(snapshot, event, old.size, 0);
	if (!is_shown)
		return;
	put_event(snapshot, WORD_SEGMENT_ALLOC, event, bytes, allocator);
	put_event(snapshot, WORD_ALLOC, event, bytes, allocator);
}

static void take_free(struct snapshot *snapshot, const struct timeline_event *event,
		      uint32_t allocator)
{
	const struct event_tensor *tensor = &event->event.tensor;
	struct live_block block;
	bool is_known = torsh_live_take(&snapshot->at->live, tensor->address, &block);

	if (torsh_trace_has(snapshot->trace, event->at_ns))
		put_free(snapshot, event, is_known ? block.size : tensor->bytes, allocator);
}

static void see_event(void *context, const struct recorded_process *process,
		      const struct timeline_event *event, struct span *innermost)
{
	struct snapshot *snapshot = context;
	const struct event_tensor *tensor = &event->event.tensor;
	uint32_t allocator;

	if (event->event.id != EVENT_TENSOR || process != snapshot->at->process ||
	    tensor->device != snapshot->at->device || !tensor->address ||
	    event->at_ns >= snapshot->trace->to_ns)
		return;
	allocator = allocator_number(snapshot->at, innermost);
	if (tensor->is_free)
		take_free(snapshot, event, allocator);
	else
		take_alloc(snapshot, event, allocator);
}

static int put_device(struct snapshot *snapshot, struct device *device)
{
	static const struct span_visitor visitor = {.event = see_event};
	int rc;

	snapshot->at = device;
	torsh_pickle_list_begin(&snapshot->pickle, &snapshot->events);
	rc = torsh_trace_walk(snapshot->trace, &visitor, NULL, snapshot);
	torsh_pickle_list_end(&snapshot->pickle, &snapshot->events);
	return rc;
}

/* ---- what is held ---------------------------------------------------------------------------- */

static void put_segment(struct snapshot *snapshot, size_t device, const struct live_block *block)
{
	static const enum word sizes[] = {WORD_TOTAL_SIZE, WORD_ALLOCATED_SIZE, WORD_ACTIVE_SIZE,
					  WORD_REQUESTED_SIZE};
	struct pickle *pickle = &snapshot->pickle;
	struct pickle_list blocks;

	torsh_pickle_dict_begin(pickle);
	put_entry(snapshot, WORD_DEVICE, device);
	put_entry(snapshot, WORD_ADDRESS, block->address);
	put_entry(snapshot, WORD_STREAM, 0);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		put_entry(snapshot, sizes[i], block->size);
	put_frames(snapshot, block->site, (uint32_t)block->stamp);
	put_word(snapshot, WORD_BLOCKS);
	torsh_pickle_list_begin(pickle, &blocks);
	torsh_pickle_item(pickle, &blocks);
	torsh_pickle_dict_begin(pickle);
	put_entry(snapshot, WORD_ADDRESS, block->address);
	put_entry(snapshot, WORD_SIZE, block->size);
	put_entry(snapshot, WORD_REQUESTED_SIZE, block->size);
	put_word(snapshot, WORD_STATE);
	put_word(snapshot, WORD_ACTIVE_ALLOCATED);
	put_frames(snapshot, block->site, (uint32_t)block->stamp);
	torsh_pickle_dict_end(pickle);
	torsh_pickle_list_end(pickle, &blocks);
	torsh_pickle_dict_end(pickle);
}

static int compare_blocks(const void *a, const void *b)
{
	uint64_t x = ((const struct live_block *)a)->address,
		 y = ((const struct live_block *)b)->address;

	return (x > y) - (x < y);
}

/*
 * In the order of addresses. Blocks of 0 bytes are left out, because readers divide by a segment's
 * size.
 */
static void put_held(struct snapshot *snapshot, size_t device, struct pickle_list *segments)
{
	const struct live_table *live = &snapshot->devices[device].live;
	struct live_block *blocks = torsh_need_items(NULL, 0, live->n_blocks, sizeof(*blocks));
	struct live_block block;
	uint64_t at = 0;
	size_t n = 0;

	snapshot->at = &snapshot->devices[device];
	while (torsh_live_next(live, &at, &block)) {
		if (block.size)
			blocks[n++] = block;
	}
	qsort(blocks, n, sizeof(*blocks), compare_blocks);
	for (size_t i = 0; i < n; i++) {
		torsh_pickle_item(&snapshot->pickle, segments);
		put_segment(snapshot, device, &blocks[i]);
	}
	free(blocks);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void add_device(struct snapshot *snapshot, const struct recorded_process *process,
		       uint32_t number)
{
	struct device *device;

	snapshot->devices =
		torsh_array_reserve(snapshot->devices, snapshot->n_devices, &snapshot->devices_room,
				    sizeof(*snapshot->devices));
	device = &snapshot->devices[snapshot->n_devices++];
	*device = (struct device){.process = process, .device = number};
	torsh_live_create(&device->live);
	torsh_key_index_create(&device->numbers);
	torsh_key_index_create(&device->frames);
	torsh_key_index_create(&device->stacks);
}

static void free_device(struct device *device)
{
	torsh_live_destroy(&device->live);
	torsh_key_index_destroy(&device->numbers);
	torsh_key_index_destroy(&device->frames);
	torsh_key_index_destroy(&device->stacks);
	free(device->allocators);
}

static void see_device(void *context, const struct recorded_process *process,
		       const struct timeline_event *event, struct span *innermost)
{
	struct snapshot *snapshot = context;
	uint32_t device = event->event.tensor.device;

	(void)innermost;
	if (event->event.id != EVENT_TENSOR || snapshot->n_devices == DEVICES_MAX)
		return;
	for (size_t i = 0; i < snapshot->n_devices; i++) {
		if (snapshot->devices[i].process == process &&
		    snapshot->devices[i].device == device)
			return;
	}
	add_device(snapshot, process, device);
}

static void put_names(struct snapshot *snapshot)
{
	struct pickle_list names;
	char device[32];

	torsh_pickle_text(&snapshot->pickle, "devices");
	torsh_pickle_list_begin(&snapshot->pickle, &names);
	for (size_t i = 0; i < snapshot->n_devices; i++) {
		const struct device *of = &snapshot->devices[i];
		char *name =
			torsh_need_text("%s of process %" PRIu32,
					torsh_device_name(of->device, device), of->process->pid);

		torsh_pickle_item(&snapshot->pickle, &names);
		torsh_pickle_text(&snapshot->pickle, name);
		free(name);
	}
	torsh_pickle_list_end(&snapshot->pickle, &names);
}

static int put_snapshot(struct snapshot *snapshot)
{
	struct pickle *pickle = &snapshot->pickle;
	struct pickle_list list;
	int rc = 0;

	torsh_pickle_begin(pickle, snapshot->trace->output);
	torsh_pickle_dict_begin(pickle);
	put_names(snapshot);
	torsh_pickle_text(pickle, "device_traces");
	torsh_pickle_list_begin(pickle, &list);
	for (size_t i = 0; i < snapshot->n_devices && rc == 0; i++) {
		torsh_pickle_item(pickle, &list);
		rc = put_device(snapshot, &snapshot->devices[i]);
	}
	torsh_pickle_list_end(pickle, &list);
	torsh_pickle_text(pickle, "segments");
	torsh_pickle_list_begin(pickle, &list);
	for (size_t i = 0; i < snapshot->n_devices && rc == 0; i++)
		put_held(snapshot, i, &list);
	torsh_pickle_list_end(pickle, &list);
	torsh_pickle_dict_end(pickle);
	torsh_pickle_end(pickle);
	return rc;
}

static int write_memory(struct trace *trace)
{
	static const struct span_visitor visitor = {.event = see_device};
	struct snapshot snapshot = {.trace = trace};
	int rc = torsh_trace_walk(trace, &visitor, NULL, &snapshot);

	if (rc == 0)
		rc = put_snapshot(&snapshot);
	for (size_t i = 0; i < snapshot.n_devices; i++)
		free_device(&snapshot.devices[i]);
	free(snapshot.devices);
	return rc;
}

const struct trace_format torsh_trace_memory = {.name = "memory",
						.ending = ".pickle",
						.is_binary = true,
						.needs = TRACE_NEEDS_TENSORS,
						.write = write_memory};
