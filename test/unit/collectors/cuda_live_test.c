/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The collector's live memory reports a new peak exactly when a model that adds everything up anew
 * does: with frees that fail, handles that outlive their names, contexts that end, addresses that
 * are reused.
 */
#include <stdbool.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "collectors/cuda/memory/cuda_live.h"
#include "test/unit/fixtures/random.h"

#define N_DEVICES 3u
#define N_CONTEXTS 4u
#define N_PLACES 3000u /* more than the table has slots for at first */
#define N_HANDLES 12u
#define N_MAPPINGS 8u
#define N_STEPS 60000u
#define MIB (UINT64_C(1) << 20)
#define PLACE_BYTES (16 * MIB)
#define PLACES_AT UINT64_C(0x7f0000000000)
#define MAPPINGS_AT UINT64_C(0x600000000000)
#define GRANULE (2 * MIB)

static struct {
	struct {
		uint64_t bytes; /* 0: free */
		uint32_t device, context, kind;
	} places[N_PLACES];
	struct {
		uint64_t bytes; /* 0: it never was, or is gone */
		uint32_t device;
		int n_names; /* itself and the times that it was retained */
	} handles[N_HANDLES];
	int mapped[N_MAPPINGS]; /* number of a handle, and 1 */
	uint64_t marks[N_DEVICES];
} model;

static uint64_t seed = 11;

static uint32_t below(uint64_t n)
{
	return (uint32_t)random_below(&seed, n);
}

static uint64_t sum_of(uint32_t device)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < N_PLACES; i++)
		sum += model.places[i].device == device ? model.places[i].bytes : 0;
	for (uint32_t i = 0; i < N_HANDLES; i++)
		sum += model.handles[i].device == device ? model.handles[i].bytes : 0;
	return sum;
}

static void expect(bool is_high, uint32_t device)
{
	uint64_t sum = sum_of(device), step = model.marks[device] / 16;
	bool is_expected = sum >= model.marks[device] + (step > GRANULE ? step : GRANULE);

	if (is_expected)
		model.marks[device] = sum;
	assert_int_equal(is_high != 0, is_expected);
}

static uint64_t place_at(uint32_t place)
{
	return PLACES_AT + place * PLACE_BYTES;
}

/* Sometimes at the address of a live block, after a missed free. */
static void get_place(uint32_t place)
{
	uint32_t kind = below(8) ? BLOCK_DEVICE : BLOCK_ARRAY;

	if (model.places[place].bytes && (below(4) || model.places[place].kind != kind))
		return;
	model.places[place].bytes = 1 + below(PLACE_BYTES);
	model.places[place].device = below(N_DEVICES);
	model.places[place].context = 1 + below(N_CONTEXTS);
	model.places[place].kind = kind;
	expect(torsh_cuda_live_got(
		       &(struct event_device_alloc){.kind = kind,
						    .address = place_at(place),
						    .bytes = model.places[place].bytes,
						    .device = model.places[place].device,
						    .context = model.places[place].context}),
	       model.places[place].device);
}

static void free_place(uint32_t place)
{
	uint32_t kind = model.places[place].bytes ? model.places[place].kind : BLOCK_DEVICE;

	torsh_cuda_live_frees(kind, place_at(place));
	if (below(8))
		model.places[place].bytes = 0;
	else
		torsh_cuda_live_kept(kind, place_at(place));
}

static bool is_mapped(uint32_t handle)
{
	for (uint32_t i = 0; i < N_MAPPINGS; i++) {
		if (model.mapped[i] == (int)handle + 1)
			return true;
	}
	return false;
}

static void end_if_unnamed(uint32_t handle)
{
	if (!model.handles[handle].n_names && !is_mapped(handle))
		model.handles[handle].bytes = 0;
}

static void create(uint32_t handle)
{
	if (model.handles[handle].bytes)
		return;
	model.handles[handle].bytes = GRANULE * (1 + below(4));
	model.handles[handle].device = below(N_DEVICES);
	model.handles[handle].n_names = 1;
	expect(torsh_cuda_live_got(
		       &(struct event_device_alloc){.kind = BLOCK_PHYSICAL,
						    .address = handle + 1,
						    .bytes = model.handles[handle].bytes,
						    .device = model.handles[handle].device}),
	       model.handles[handle].device);
}

static void retain(uint32_t handle)
{
	if (!model.handles[handle].bytes)
		return;
	model.handles[handle].n_names++;
	assert_false(torsh_cuda_live_got(&(struct event_device_alloc){
		.kind = BLOCK_PHYSICAL, .flags = BLOCK_IS_RETAINED, .address = handle + 1}));
}

static void release(uint32_t handle)
{
	if (!model.handles[handle].n_names)
		return;
	torsh_cuda_live_frees(BLOCK_PHYSICAL, handle + 1);
	if (!below(6)) {
		torsh_cuda_live_kept(BLOCK_PHYSICAL, handle + 1);
		return;
	}
	model.handles[handle].n_names--;
	end_if_unnamed(handle);
}

static void map(uint32_t mapping, uint32_t handle)
{
	if (model.mapped[mapping] || !model.handles[handle].bytes)
		return;
	model.mapped[mapping] = (int)handle + 1;
	assert_false(torsh_cuda_live_got(
		&(struct event_device_alloc){.kind = BLOCK_MAPPING,
					     .address = MAPPINGS_AT + mapping * GRANULE,
					     .bytes = GRANULE,
					     .handle = handle + 1}));
}

/* One or more at once, which lie one behind the other. */
static void unmap(uint32_t from)
{
	uint32_t end = from;

	while (end < N_MAPPINGS && model.mapped[end] && (end == from || below(2)))
		end++;
	torsh_cuda_live_unmapped(MAPPINGS_AT + from * GRANULE, (end - from) * GRANULE);
	for (; from < end; from++) {
		uint32_t handle = (uint32_t)model.mapped[from] - 1;

		model.mapped[from] = 0;
		end_if_unnamed(handle);
	}
}

static void end_context(uint32_t context)
{
	torsh_cuda_live_context_ended(context);
	for (uint32_t i = 0; i < N_PLACES; i++) {
		if (model.places[i].context == context)
			model.places[i].bytes = 0;
	}
}

static void step(void)
{
	uint32_t what = below(1000);

	if (what < 500)
		get_place(below(N_PLACES));
	else if (what < 800)
		free_place(below(N_PLACES));
	else if (what < 850)
		create(below(N_HANDLES));
	else if (what < 870)
		retain(below(N_HANDLES));
	else if (what < 920)
		release(below(N_HANDLES));
	else if (what < 960)
		map(below(N_MAPPINGS), below(N_HANDLES));
	else if (what < 999)
		unmap(below(N_MAPPINGS));
	else if (!below(20))
		end_context(1 + below(N_CONTEXTS));
}

static void a_new_high_is_reported_as_a_model_reports_it(void **state)
{
	uint64_t n_high = 0;

	(void)state;
	for (uint32_t i = 0; i < N_STEPS; i++) {
		uint64_t before = model.marks[0] + model.marks[1] + model.marks[2];

		step();
		n_high += model.marks[0] + model.marks[1] + model.marks[2] != before;
	}
	/* It grew by sixteenths, and shrank, and grew again. */
	assert_in_range(n_high, 100, 1000);
}

static void what_is_of_no_device_is_not_counted(void **state)
{
	static const struct event_device_alloc others[] = {
		{.kind = BLOCK_PINNED, .address = 1, .bytes = UINT64_C(1) << 50},
		{.kind = BLOCK_MANAGED, .address = 2, .bytes = UINT64_C(1) << 50},
		{.kind = BLOCK_PHYSICAL,
		 .flags = BLOCK_IS_OF_HOST,
		 .address = 3,
		 .bytes = UINT64_C(1) << 50},
		{.kind = BLOCK_DEVICE,
		 .flags = BLOCK_IS_IMPORTED,
		 .address = 4,
		 .bytes = UINT64_C(1) << 50},
		{.kind = BLOCK_DEVICE,
		 .address = 5,
		 .bytes = UINT64_C(1) << 50,
		 .device = DEVICE_NOT_KNOWN},
		{.kind = BLOCK_DEVICE,
		 .address = 6,
		 .bytes = UINT64_C(1) << 50,
		 .device = LIVE_DEVICES_MAX},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_false(torsh_cuda_live_got(&others[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_high_is_reported_as_a_model_reports_it),
		cmocka_unit_test(what_is_of_no_device_is_not_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
