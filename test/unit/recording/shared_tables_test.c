/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Processes that share tables, and rows about it that nobody should believe. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/wire/channel.h"
#include "tools/recording/recording.h"

static struct recording *recording;

static int start(void **state)
{
	(void)state;
	recording = torsh_recording_new("test");
	return 0;
}

static int finish(void **state)
{
	(void)state;
	torsh_recording_destroy(recording);
	return 0;
}

/* Load a Process row. tables_of 0: it has its own. */
static void load_process(uint32_t number, uint32_t tables_of)
{
	Torsh__Process row = TORSH__PROCESS__INIT, *rows = &row;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;

	row.has_process = 1;
	row.process = number;
	row.has_tables_of = tables_of != 0;
	row.tables_of = tables_of;
	chunk.n_process = 1;
	chunk.process = &rows;
	assert_int_equal(torsh_recording_load(recording, &chunk), 0);
}

/* One module at 0x1000, an address of it at 0x1234, one without a module, and a stack of both. */
static void load_tables(uint32_t number)
{
	uint64_t bias = 0x1000, span = 0x9000, ips[] = {0x1234, 0x5678};
	uint32_t flags[] = {ADDRESS_RETURN, ADDRESS_RETURN}, module[] = {0, CHANNEL_NO_MODULE};
	uint32_t parents[] = {0, 1}, addresses[] = {1, 0};
	char *path = "/lib/a.so";
	Torsh__Modules modules = TORSH__MODULES__INIT, *modules_row = &modules;
	Torsh__Addresses rows = TORSH__ADDRESSES__INIT, *addresses_row = &rows;
	Torsh__Stacks stacks = TORSH__STACKS__INIT, *stacks_row = &stacks;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;

	modules.process = rows.process = stacks.process = number;
	modules.n_bias = modules.n_start = modules.n_end = modules.n_path = 1;
	modules.bias = modules.start = &bias;
	modules.end = &span;
	modules.path = &path;
	rows.n_ip = rows.n_flags = rows.n_module = 2;
	rows.ip = ips;
	rows.flags = flags;
	rows.module = module;
	stacks.first = 1;
	stacks.n_parent = stacks.n_address = 2;
	stacks.parent = parents;
	stacks.address = addresses;
	chunk.n_modules = chunk.n_addresses = chunk.n_stacks = 1;
	chunk.modules = &modules_row;
	chunk.addresses = &addresses_row;
	chunk.stacks = &stacks_row;
	assert_int_equal(torsh_recording_load(recording, &chunk), 0);
}

static void load_placements(uint32_t number, uint32_t *modules, size_t n_modules, int64_t *shifts,
			    size_t n_shifts)
{
	Torsh__Placements row = TORSH__PLACEMENTS__INIT, *rows = &row;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;

	row.process = number;
	row.n_module = n_modules;
	row.module = modules;
	row.n_shift = n_shifts;
	row.shift = shifts;
	chunk.n_placements = 1;
	chunk.placements = &rows;
	assert_int_equal(torsh_recording_load(recording, &chunk), 0);
}

static void a_process_has_the_rows_of_the_other(void **state)
{
	struct recorded_process *one, *other;
	uint32_t module = 0, addresses[2];
	int64_t shift = -0x800;

	(void)state;
	load_process(1, 0);
	load_process(2, 1);
	load_tables(1);
	load_placements(2, &module, 1, &shift, 1);
	load_process(2, 1);
	one = torsh_recording_process(recording, 1);
	other = torsh_recording_process(recording, 2);
	assert_ptr_equal(one->tables, other->tables);
	assert_int_equal(one->tables->n_users, 2);
	assert_int_equal(torsh_recording_walk(other, 2, addresses, 2), 2);
	assert_int_equal(addresses[0], 0);
	assert_string_equal(torsh_recording_module(other, 0)->path, "/lib/a.so");
	assert_int_equal(torsh_recording_ip(one, 0), 0x1234);
	assert_int_equal(torsh_recording_ip(other, 0), 0x1234 - 0x800);
	assert_int_equal(torsh_recording_ip(other, 1), 0x5678);
	assert_false(torsh_recording_has_same_code(one, other));
	assert_int_equal(recording->n_bad_rows, 0);
}

/* Its own row may be damaged, or come later. */
static void the_owner_needs_no_row_of_its_own(void **state)
{
	(void)state;
	load_process(2, 1);
	load_process(3, 1);
	load_tables(1);
	assert_int_equal(torsh_recording_process(recording, 3)->tables->n_stacks, 3);
	assert_true(torsh_recording_has_same_code(torsh_recording_process(recording, 2),
						  torsh_recording_process(recording, 3)));
}

static void tables_with_rows_are_not_given_up(void **state)
{
	(void)state;
	load_process(1, 0);
	load_tables(2);
	load_process(2, 1);
	assert_int_equal(recording->n_bad_rows, 1);
	assert_int_equal(torsh_recording_process(recording, 2)->tables->n_stacks, 3);
	assert_int_equal(torsh_recording_process(recording, 1)->tables->n_stacks, 0);
}

/* 2 has those of 1, and then 1 those of 3, which has those of 2. */
static void tables_that_go_round_have_an_end(void **state)
{
	(void)state;
	load_process(2, 1);
	load_process(3, 2);
	load_process(1, 3);
	load_process(1, 1);
	load_process(4, 4);
	load_process(1, 4);
	load_tables(2);
	assert_int_equal(torsh_recording_process(recording, 2)->tables->n_stacks, 3);
	assert_int_equal(torsh_recording_process(recording, 3)->tables->n_stacks, 3);
	assert_int_equal(torsh_recording_process(recording, 1)->tables->n_stacks, 0);
}

static void placements_of_nothing_are_bad_rows(void **state)
{
	uint32_t modules[] = {1, UINT32_MAX};
	int64_t shifts[] = {1, 2};

	(void)state;
	load_process(1, 0);
	load_tables(1);
	load_placements(1, modules, 2, shifts, 2);
	assert_int_equal(recording->n_bad_rows, 2);
	load_placements(1, modules, 2, shifts, 1);
	assert_int_equal(recording->n_bad_rows, 3);
	assert_int_equal(torsh_recording_ip(torsh_recording_process(recording, 1), 0), 0x1234);
}

/* What was mapped at one stack, of a session that has millions: none of them is loaded. */
static void load_mapping(uint32_t process, uint32_t stack)
{
	uint32_t seen = 1;
	int64_t one = 1;
	uint64_t total = 1;
	Torsh__Mappings row = TORSH__MAPPINGS__INIT, *rows = &row;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;

	row.process = process;
	row.n_stack = row.n_seen = row.n_total_bytes = 1;
	row.n_base_pieces = row.n_base_bytes = row.n_delta_pieces = row.n_delta_bytes = 1;
	row.stack = &stack;
	row.seen = &seen;
	row.base_pieces = row.base_bytes = row.delta_pieces = row.delta_bytes = &one;
	row.total_bytes = &total;
	chunk.n_mappings = 1;
	chunk.mappings = &rows;
	assert_int_equal(torsh_recording_load(recording, &chunk), 0);
}

/* A command that shows no stack doesn't read them; processes of a session share their numbers. */
static void rows_of_stacks_that_are_not_loaded_are_whole(void **state)
{
	enum { PROCESSES = 64, FAR = 4000000 };

	(void)state;
	for (uint32_t i = 1; i <= PROCESSES; i++) {
		load_process(i, i > 1);
		load_mapping(i, FAR + i);
	}
	for (uint32_t i = 1; i <= PROCESSES; i++)
		assert_int_equal(torsh_recording_process(recording, i)->mappings.n, 1);
	assert_int_equal(recording->n_bad_rows, 0);
	load_mapping(1, UINT32_MAX);
	assert_int_equal(recording->n_bad_rows, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_process_has_the_rows_of_the_other, start, finish),
		cmocka_unit_test_setup_teardown(the_owner_needs_no_row_of_its_own, start, finish),
		cmocka_unit_test_setup_teardown(tables_with_rows_are_not_given_up, start, finish),
		cmocka_unit_test_setup_teardown(tables_that_go_round_have_an_end, start, finish),
		cmocka_unit_test_setup_teardown(placements_of_nothing_are_bad_rows, start, finish),
		cmocka_unit_test_setup_teardown(rows_of_stacks_that_are_not_loaded_are_whole, start,
						finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
