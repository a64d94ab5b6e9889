/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The fold of device memory equals a model that adds everything up anew after each event, for any
 * events in any order: plain memory, physical memory by handles and mappings, tensors in both,
 * frees that fail or match nothing.
 */
#include <stdbool.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "test/unit/fixtures/random.h"
#include "tools/device/memory/device_blocks.h"

#define N_PLACES 40u
#define N_HANDLES 12u
#define N_MAPPINGS 20u
#define N_TENSORS 60u
#define PLACE_BYTES UINT64_C(0x1000)
#define PLAIN_AT UINT64_C(0x7f0000000000)
#define MAPPED_AT UINT64_C(0x600000000000)
#define N_STEPS 20000u

/* What a block of plain memory is, by the number of its kind here. */
static const struct {
	uint32_t kind, device;
	const char *scope;
} kinds[] = {
	{BLOCK_DEVICE, 0, "cuda:0"},	     {BLOCK_DEVICE, 1, "cuda:1"},
	{BLOCK_MANAGED, 0, "managed"},	     {BLOCK_PINNED, 0, "pinned"},
	{BLOCK_REGISTERED, 0, "registered"},
};

#define N_KINDS (sizeof(kinds) / sizeof(*kinds))

struct model {
	struct {
		bool is_alive;
		int kind;
		uint64_t bytes;
	} places[N_PLACES];
	struct {
		uint64_t bytes; /* 0: it never was, or is gone */
		int n_handles; /* it and the times that it was retained */
	} handles[N_HANDLES];
	int mapped[N_MAPPINGS]; /* number of a handle, and 1 */
	struct {
		uint64_t address, bytes; /* 0: none */
	} tensors[N_TENSORS];
	uint64_t unknown_frees, failed_frees;
};

static struct device_blocks blocks;
static struct model model;
static uint64_t seed;

static uint64_t below(uint64_t n)
{
	return random_below(&seed, n);
}

static void give(const struct event *event)
{
	struct device_origin origin = {.thread = 1};

	assert_true(torsh_device_blocks_take(&blocks, event, &origin));
}

static void emit_alloc(struct event_device_alloc alloc)
{
	give(&(struct event){.id = EVENT_DEVICE_ALLOC, .device_alloc = alloc});
}

static void emit_free(uint32_t kind, uint64_t address, uint64_t bytes)
{
	give(&(struct event){.id = EVENT_DEVICE_FREE,
			     .device_free = {.kind = kind, .address = address, .bytes = bytes}});
}

static void emit_failure(uint32_t kind, uint64_t address)
{
	give(&(struct event){
		.id = EVENT_DEVICE_FREE_FAILED,
		.device_free_failed = {.kind = kind, .address = address, .result = 1}});
	model.failed_frees++;
}

/* ---- what happens ---------------------------------------------------------------------------- */

static uint64_t place_address(uint64_t place)
{
	return PLAIN_AT + place * PLACE_BYTES;
}

static uint64_t mapping_address(uint64_t mapping)
{
	return MAPPED_AT + mapping * PLACE_BYTES;
}

/* Where something lives already, its free was not seen. */
static void get_plain(void)
{
	uint64_t place = below(N_PLACES), kind = below(N_KINDS), bytes = 1 + below(PLACE_BYTES);

	model.places[place].is_alive = 1;
	model.places[place].kind = (int)kind;
	model.places[place].bytes = bytes;
	emit_alloc((struct event_device_alloc){.kind = kinds[kind].kind,
					       .device = kinds[kind].device,
					       .address = place_address(place),
					       .bytes = bytes});
}

static void free_plain(void)
{
	uint64_t place = below(N_PLACES), address = place_address(place);
	int fails = below(8) == 0;

	emit_free(BLOCK_DEVICE, address, 0);
	if (fails)
		emit_failure(BLOCK_DEVICE, address);
	else if (!model.places[place].is_alive)
		model.unknown_frees++;
	else
		model.places[place].is_alive = 0;
}

static int n_mapped(uint64_t handle)
{
	int n = 0;

	for (size_t i = 0; i < N_MAPPINGS; i++)
		n += model.mapped[i] == (int)handle + 1;
	return n;
}

/* A number comes back for other memory only when nothing of the old is left. */
static void get_handle(void)
{
	uint64_t handle = below(N_HANDLES);

	if (model.handles[handle].n_handles) {
		emit_alloc((struct event_device_alloc){
			.kind = BLOCK_PHYSICAL, .address = handle + 1, .flags = BLOCK_IS_RETAINED});
		model.handles[handle].n_handles++;
	} else if (!n_mapped(handle)) {
		model.handles[handle].bytes = 1 + below(PLACE_BYTES);
		model.handles[handle].n_handles = 1;
		emit_alloc((struct event_device_alloc){.kind = BLOCK_PHYSICAL,
						       .address = handle + 1,
						       .bytes = model.handles[handle].bytes});
	}
}

static void release_handle(void)
{
	uint64_t handle = below(N_HANDLES);
	int fails = below(8) == 0;

	emit_free(BLOCK_PHYSICAL, handle + 1, 0);
	if (fails)
		emit_failure(BLOCK_PHYSICAL, handle + 1);
	else if (model.handles[handle].n_handles)
		model.handles[handle].n_handles--;
	else
		model.unknown_frees++;
}

static void map(void)
{
	uint64_t mapping = below(N_MAPPINGS), handle = below(N_HANDLES);

	if (!model.handles[handle].n_handles || model.mapped[mapping])
		return;
	model.mapped[mapping] = (int)handle + 1;
	emit_alloc((struct event_device_alloc){.kind = BLOCK_MAPPING,
					       .address = mapping_address(mapping),
					       .bytes = PLACE_BYTES,
					       .handle = handle + 1});
}

/* Several at once. */
static void unmap(void)
{
	uint64_t first = below(N_MAPPINGS), n = 1 + below(N_MAPPINGS - first), n_there = 0;
	int fails = below(8) == 0;

	for (uint64_t i = first; i < first + n; i++)
		n_there += model.mapped[i] != 0;
	emit_free(BLOCK_MAPPING, mapping_address(first), n * PLACE_BYTES);
	if (fails)
		emit_failure(BLOCK_MAPPING, mapping_address(first));
	else if (!n_there)
		model.unknown_frees++;
	else
		memset(&model.mapped[first], 0, n * sizeof(*model.mapped));
}

/*
 * Within one place: a tensor never outlives the memory that it is in, nor does anything else move
 * in.
 */
static void change_tensor(void)
{
	uint64_t i = below(N_TENSORS), address = place_address(below(N_PLACES)) + 16 * (1 + i);
	struct event event = {.id = EVENT_TENSOR, .tensor = {.device = 1 << 8}};

	event.tensor.is_free = model.tensors[i].bytes != 0;
	event.tensor.address = event.tensor.is_free ? model.tensors[i].address : address;
	event.tensor.bytes = event.tensor.is_free ? model.tensors[i].bytes : 16;
	model.tensors[i].address = address;
	model.tensors[i].bytes = event.tensor.is_free ? 0 : 16;
	give(&event);
}

/* ---- what is to be there --------------------------------------------------------------------- */

static const struct device_scope *scope_named(const char *name)
{
	static const struct device_scope none;
	char buffer[DEVICE_SCOPE_NAME_BYTES];

	for (size_t i = 0; i < blocks.n_scopes; i++) {
		if (!strcmp(torsh_device_scope_name(&blocks.scopes[i], buffer), name))
			return &blocks.scopes[i];
	}
	return &none;
}

static void expect_sums(void)
{
	for (size_t kind = 0; kind < N_KINDS; kind++) {
		const struct device_scope *scope = scope_named(kinds[kind].scope);
		uint64_t bytes = 0, n = 0;

		for (size_t i = 0; i < N_PLACES; i++) {
			if (model.places[i].is_alive && model.places[i].kind == (int)kind) {
				bytes += model.places[i].bytes;
				n++;
			}
		}
		for (size_t i = 0; kind == 0 && i < N_HANDLES; i++) {
			if (model.handles[i].n_handles || n_mapped(i)) {
				bytes += model.handles[i].bytes;
				n++;
			}
		}
		assert_int_equal(scope->bytes, bytes);
		assert_int_equal(scope->n, n);
	}
	assert_int_equal(blocks.unknown_frees, model.unknown_frees);
	assert_int_equal(blocks.failed_frees, model.failed_frees);
}

/* The sums over blocks equal those of the scopes. */
static void expect_parts(void)
{
	for (size_t scope = 0; scope < blocks.n_scopes; scope++) {
		uint64_t bytes = 0, tensor_bytes = 0;

		for (size_t i = 0; i < blocks.n_blocks; i++) {
			if (blocks.blocks[i].is_alive && blocks.blocks[i].scope == scope) {
				bytes += blocks.blocks[i].bytes;
				tensor_bytes += blocks.blocks[i].tensor_bytes;
			}
		}
		assert_int_equal(bytes, blocks.scopes[scope].bytes);
		assert_int_equal(tensor_bytes, blocks.scopes[scope].tensor_bytes);
	}
}

static void any_events_add_up_as_in_a_plain_model(void **state)
{
	static void (*const happenings[])(void) = {
		get_plain, free_plain, get_handle, release_handle, map, unmap, change_tensor};

	(void)state;
	for (uint64_t run = 1; run <= 5; run++) {
		seed = run;
		model = (struct model){0};
		torsh_device_blocks_create(&blocks);
		for (uint64_t i = 0; i < N_STEPS; i++) {
			happenings[below(sizeof(happenings) / sizeof(*happenings))]();
			expect_sums();
			expect_parts();
		}
		torsh_device_blocks_destroy(&blocks);
	}
}

/* ---- single things --------------------------------------------------------------------------- */

static int create_blocks(void **state)
{
	(void)state;
	model = (struct model){0};
	torsh_device_blocks_create(&blocks);
	return 0;
}

static int destroy_blocks(void **state)
{
	(void)state;
	torsh_device_blocks_destroy(&blocks);
	return 0;
}

static void emit_tensor(uint64_t address, uint64_t bytes, bool is_free)
{
	give(&(struct event){
		.id = EVENT_TENSOR,
		.tensor = {
			.device = 1 << 8, .address = address, .bytes = bytes, .is_free = is_free}});
}

static void a_tensor_lies_in_all_the_memory_that_it_covers(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 3; i++) {
		emit_alloc((struct event_device_alloc){
			.kind = BLOCK_PHYSICAL, .address = i + 1, .bytes = PLACE_BYTES});
		emit_alloc((struct event_device_alloc){.kind = BLOCK_MAPPING,
						       .address = mapping_address(i),
						       .bytes = PLACE_BYTES,
						       .handle = i + 1});
	}
	emit_tensor(mapping_address(0) + 0x800, 2 * PLACE_BYTES, false);
	assert_int_equal(scope_named("cuda:0")->tensor_bytes, 2 * PLACE_BYTES);
	assert_int_equal(blocks.blocks[0].tensor_bytes, 0x800);
	assert_int_equal(blocks.blocks[1].tensor_bytes, PLACE_BYTES);
	assert_int_equal(blocks.blocks[2].tensor_bytes, 0x800);
	emit_tensor(mapping_address(0) + 0x800, 2 * PLACE_BYTES, true);
	assert_int_equal(scope_named("cuda:0")->tensor_bytes, 0);
}

static void what_a_context_had_ends_with_it(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 4; i++)
		emit_alloc((struct event_device_alloc){.kind = BLOCK_DEVICE,
						       .address = place_address(i),
						       .bytes = 100,
						       .context = 1 + (i & 1)});
	give(&(struct event){.id = EVENT_DEVICE_FREE,
			     .device_free = {.kind = BLOCK_CONTEXT, .context = 2}});
	assert_int_equal(scope_named("cuda:0")->bytes, 200);
	assert_int_equal(blocks.n_left, 2);
	assert_int_equal(blocks.left[0].address, place_address(1));
}

static void imported_memory_has_no_bytes_of_its_own(void **state)
{
	(void)state;
	emit_alloc((struct event_device_alloc){.kind = BLOCK_DEVICE,
					       .address = place_address(0),
					       .flags = BLOCK_IS_IMPORTED | BLOCK_IS_UNSIZED});
	assert_int_equal(scope_named("imported")->n, 1);
	assert_int_equal(scope_named("imported")->n_unsized, 1);
	assert_int_equal(scope_named("cuda:0")->bytes, 0);
	emit_free(BLOCK_DEVICE, place_address(0), 0);
	assert_int_equal(scope_named("imported")->n, 0);
}

/* A recording may contain anything. */
static void nonsense_is_harmless(void **state)
{
	uint64_t numbers = 7;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		struct event event = {.id = EVENT_DEVICE_ALLOC +
					    (uint32_t)random_below(&numbers, 3)};

		if (random_below(&numbers, 4) == 0) {
			emit_tensor(random_wide(&numbers), random_wide(&numbers),
				    (int)random_below(&numbers, 2));
			continue;
		}
		if (event.id == EVENT_DEVICE_ALLOC)
			event.device_alloc = (struct event_device_alloc){
				.kind = (uint32_t)random_below(&numbers, 11),
				.address = random_wide(&numbers),
				.bytes = random_wide(&numbers),
				.handle = random_wide(&numbers) & 0xff,
				.flags = (uint32_t)random_wide(&numbers),
				.device = (uint32_t)random_below(&numbers, 4)};
		else if (event.id == EVENT_DEVICE_FREE)
			event.device_free = (struct event_device_free){
				.kind = (uint32_t)random_below(&numbers, 11),
				.address = random_wide(&numbers),
				.bytes = random_wide(&numbers)};
		else
			event.device_free_failed = (struct event_device_free_failed){
				.kind = (uint32_t)random_below(&numbers, 11),
				.address = random_wide(&numbers)};
		give(&event);
	}
	expect_parts();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_events_add_up_as_in_a_plain_model),
		cmocka_unit_test_setup_teardown(a_tensor_lies_in_all_the_memory_that_it_covers,
						create_blocks, destroy_blocks),
		cmocka_unit_test_setup_teardown(what_a_context_had_ends_with_it, create_blocks,
						destroy_blocks),
		cmocka_unit_test_setup_teardown(imported_memory_has_no_bytes_of_its_own,
						create_blocks, destroy_blocks),
		cmocka_unit_test_setup_teardown(nonsense_is_harmless, create_blocks,
						destroy_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
