/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * NVTX's memory extension: a program reports its own pools of memory. Handles of pools and
 * regions are their addresses, without a consumer: a consumer's are its own, and regions that the
 * program names by them are not followed. Permissions have nothing to record.
 */
#include <errno.h>
#include <stdbool.h>

#include "agent/process/config.h"
#include "agent/producer/producer.h"
#include "collectors/ranges/nvtx_events.h"
#include "shim/ranges/nvtx.h"
#include "shim/ranges/ranges.h"

enum memory_slot {
	SLOT_HEAP_REGISTER,
	SLOT_HEAP_UNREGISTER,
	SLOT_HEAP_RESET,
	SLOT_REGIONS_REGISTER,
	SLOT_REGIONS_RESIZE,
	SLOT_REGIONS_UNREGISTER,
	SLOT_REGIONS_NAME
};

typedef void *heap_fn(void *domain, const struct nvtx_heap *heap);
typedef void handle_fn(void *domain, void *heap);
typedef void batch_fn(void *domain, const void *batch);

#define CONSUMER(slot, type) ((type *)torsh_nvtx_consumer_memory[slot])

static void emit(void *domain, struct event_pool pool, struct range_text name, const void *frame)
{
	int saved = errno;
	struct producer *producer = torsh_producer_enter();

	if (producer) {
		struct event event = {.id = EVENT_POOL, .pool = pool};

		event.pool.domain = torsh_nvtx_label(domain);
		event.pool.name = torsh_ranges_text_label(name);
		torsh_producer_event(producer, &event, torsh_config.with_stack ? frame : NULL);
		torsh_producer_leave(producer);
	}
	errno = saved;
}

#define EMIT(domain, frame, ...) \
	emit(domain, (struct event_pool){__VA_ARGS__}, (struct range_text){0}, frame)

static void *register_heap(void *domain, const struct nvtx_heap *heap)
{
	heap_fn *next = CONSUMER(SLOT_HEAP_REGISTER, heap_fn);
	void *theirs = next ? next(domain, heap) : NULL;
	bool is_known = heap->struct_size >= sizeof(*heap) && heap->type == NVTX_MEMORY_VIRTUAL &&
			heap->extent && heap->extent_bytes >= sizeof(*heap->extent);
	void *handle = next ? theirs : is_known ? (void *)(uintptr_t)heap->extent->address : NULL;

	if (is_known)
		emit(domain,
		     (struct event_pool){.what = POOL_BEGINS,
					 .heap = (uintptr_t)handle,
					 .address = (uintptr_t)heap->extent->address,
					 .bytes = heap->extent->bytes},
		     torsh_nvtx_text((int32_t)heap->message_type, heap->message),
		     __builtin_frame_address(0));
	return handle;
}

static void unregister_heap(void *domain, void *heap)
{
	handle_fn *next = CONSUMER(SLOT_HEAP_UNREGISTER, handle_fn);

	EMIT(domain, NULL, .what = POOL_ENDS, .heap = (uintptr_t)heap);
	if (next)
		next(domain, heap);
}

static void reset_heap(void *domain, void *heap)
{
	handle_fn *next = CONSUMER(SLOT_HEAP_RESET, handle_fn);

	EMIT(domain, NULL, .what = POOL_RESETS, .heap = (uintptr_t)heap);
	if (next)
		next(domain, heap);
}

/* Whether there is an array, of elements that have what is known of them. */
static bool has_elements(const void *elements, size_t element_bytes, size_t known_bytes)
{
	return elements && element_bytes >= known_bytes;
}

/* Element i of an array whose elements may be larger than those that are known. */
static const void *element(const void *elements, size_t element_bytes, size_t i)
{
	return (const char *)elements + i * element_bytes;
}

static void register_regions(void *domain, const struct nvtx_regions *batch)
{
	batch_fn *next = CONSUMER(SLOT_REGIONS_REGISTER, batch_fn);
	bool is_known =
		batch->struct_size >= sizeof(*batch) && batch->type == NVTX_MEMORY_VIRTUAL &&
		has_elements(batch->elements, batch->element_bytes, sizeof(struct nvtx_extent));

	if (next)
		next(domain, batch);
	for (size_t i = 0; is_known && i < batch->n; i++) {
		const struct nvtx_extent *extent =
			element(batch->elements, batch->element_bytes, i);

		EMIT(domain, __builtin_frame_address(0), .what = POOL_REGION,
		     .heap = (uintptr_t)batch->heap, .address = (uintptr_t)extent->address,
		     .bytes = extent->bytes);
		if (batch->handles && !next)
			batch->handles[i] = (void *)(uintptr_t)extent->address;
	}
}

static void resize_regions(void *domain, const struct nvtx_regions_of_no_heap *batch)
{
	batch_fn *next = CONSUMER(SLOT_REGIONS_RESIZE, batch_fn);
	bool is_known =
		batch->struct_size >= sizeof(*batch) && batch->type == NVTX_MEMORY_VIRTUAL &&
		has_elements(batch->elements, batch->element_bytes, sizeof(struct nvtx_extent));

	for (size_t i = 0; is_known && i < batch->n; i++) {
		const struct nvtx_extent *extent =
			element(batch->elements, batch->element_bytes, i);

		EMIT(domain, NULL, .what = POOL_RESIZES, .address = (uintptr_t)extent->address,
		     .bytes = extent->bytes);
	}
	if (next)
		next(domain, batch);
}

/* Whether a reference of this kind is an address. */
static bool is_followed(uint32_t reference)
{
	if (reference == NVTX_MEMORY_BY_POINTER ||
	    !torsh_nvtx_consumer_memory[SLOT_REGIONS_REGISTER])
		return true;
	torsh_ranges_note(
		"NVTX: regions of memory that the program names by the other tool's handles "
		"are not followed");
	return false;
}

static void unregister_regions(void *domain, const struct nvtx_regions_of_no_heap *batch)
{
	batch_fn *next = CONSUMER(SLOT_REGIONS_UNREGISTER, batch_fn);
	bool is_known = batch->struct_size >= sizeof(*batch) &&
			has_elements(batch->elements, batch->element_bytes, sizeof(void *)) &&
			is_followed(batch->type);

	for (size_t i = 0; is_known && i < batch->n; i++) {
		void *const *region = element(batch->elements, batch->element_bytes, i);

		EMIT(domain, NULL, .what = POOL_REGION_ENDS, .address = (uintptr_t)*region);
	}
	if (next)
		next(domain, batch);
}

struct names {
	uint16_t compatible_id, struct_size;
	uint32_t reserved;
	size_t n, element_bytes;
	const void *elements;
};

static void name_regions(void *domain, const struct names *batch)
{
	batch_fn *next = CONSUMER(SLOT_REGIONS_NAME, batch_fn);
	bool is_known = batch->struct_size >= sizeof(*batch) &&
			has_elements(batch->elements, batch->element_bytes,
				     sizeof(struct nvtx_region_name));

	for (size_t i = 0; is_known && i < batch->n; i++) {
		const struct nvtx_region_name *named =
			element(batch->elements, batch->element_bytes, i);

		if (is_followed(named->reference))
			emit(domain,
			     (struct event_pool){.what = POOL_NAMES,
						 .address = (uintptr_t)named->region},
			     torsh_nvtx_text((int32_t)named->message_type, named->message), NULL);
	}
	if (next)
		next(domain, batch);
}

const intptr_t torsh_nvtx_memory[NVTX_EXTENSION_SLOTS] = {
	[SLOT_HEAP_REGISTER] = (intptr_t)register_heap,
	[SLOT_HEAP_UNREGISTER] = (intptr_t)unregister_heap,
	[SLOT_HEAP_RESET] = (intptr_t)reset_heap,
	[SLOT_REGIONS_REGISTER] = (intptr_t)register_regions,
	[SLOT_REGIONS_RESIZE] = (intptr_t)resize_regions,
	[SLOT_REGIONS_UNREGISTER] = (intptr_t)unregister_regions,
	[SLOT_REGIONS_NAME] = (intptr_t)name_regions,
};
