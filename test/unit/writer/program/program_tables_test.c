/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Processes of one program share rows for the code that they have in common, wherever each has it,
 * and for nothing else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "test/unit/fixtures/channel_fixture.h"
#include "tools/writer/fold/program/process_code.h"
#include "tools/writer/fold/program/program_tables.h"

#define SPAN 0x10000u

/* Each process has a channel, whose addresses ids 1, 2, ... the test sets one after the other. */
struct process {
	struct fake_channel channel;
	struct channel_view view;
	struct process_code code;
	uint32_t n_modules, n_codes, n_addresses;
};

static struct process processes[2];
static struct code_table table;

static int start(void **state)
{
	(void)state;
	torsh_code_create(&table);
	for (uint32_t i = 0; i < 2; i++) {
		struct process *process = &processes[i];

		*process = (struct process){0};
		fake_channel_create(&process->channel, 1);
		assert_int_equal(torsh_view_open(&process->view, dup(process->channel.fd)), 0);
		torsh_process_code_create(&process->code, &process->view, &table, i + 1);
	}
	return 0;
}

static int finish(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		torsh_process_code_destroy(&processes[i].code);
		torsh_view_close(&processes[i].view);
		fake_channel_destroy(&processes[i].channel);
	}
	torsh_code_destroy(&table);
	return 0;
}

/* Returns the module's index. build_id: one byte, 0: none. */
static uint32_t send_module(struct process *process, const char *path, uint64_t bias,
			    uint8_t build_id)
{
	uint32_t index = process->n_modules++;

	process->channel.modules[index] = (struct channel_module){
		.bias = bias,
		.start = bias + 0x1000,
		.end = bias + 0x1000 + SPAN,
		.path = fake_text(&process->channel, path, (uint32_t)strlen(path)),
		.n_build_id = build_id != 0,
		.build_id = {build_id},
	};
	atomic_store(&process->channel.header->n_modules, process->n_modules);
	return index;
}

static uint32_t send_code(struct process *process, const char *name, const char *file,
			  uint32_t first_line)
{
	uint32_t index = process->n_codes++;

	process->channel.codes[index] = (struct channel_code){
		.name = fake_text(&process->channel, name, (uint32_t)strlen(name)),
		.file = fake_text(&process->channel, file, (uint32_t)strlen(file)),
		.first_line = first_line,
	};
	atomic_store(&process->channel.header->n_codes, process->n_codes);
	return index;
}

/* Returns the number of an address that the process sends. */
static uint32_t number_of(struct process *process, uint64_t ip, uint32_t flags, uint32_t module)
{
	uint32_t id = ++process->n_addresses;
	int64_t number;

	process->channel.addresses[id].module = module;
	atomic_store(&process->channel.addresses[id].ip_and_flags,
		     ip << 8 | CHANNEL_ADDRESS_THERE | flags);
	number = torsh_process_code_number(&process->code, id);
	assert_true(number >= 0);
	return (uint32_t)number;
}

static void one_file_at_two_places_is_one_module(void **state)
{
	uint32_t a = send_module(&processes[0], "/lib/a.so", 0x7f0000000000, 1);
	uint32_t b = send_module(&processes[1], "/lib/a.so", 0x7e0000000000, 1);
	uint32_t first = number_of(&processes[0], 0x7f0000001234, ADDRESS_RETURN, a);

	(void)state;
	assert_int_equal(number_of(&processes[1], 0x7e0000001234, ADDRESS_RETURN, b), first);
	assert_int_not_equal(number_of(&processes[1], 0x7e0000001235, ADDRESS_RETURN, b), first);
	assert_int_not_equal(number_of(&processes[1], 0x7e0000001234, ADDRESS_EXACT, b), first);
	assert_int_equal(table.n_modules, 1);
	assert_int_equal(table.addresses[first].ip, 0x7f0000001234);
	assert_int_equal(processes[0].code.placements[0].bias, 0x7f0000000000);
	assert_int_equal(processes[1].code.placements[0].bias, 0x7e0000000000);
}

/* As after dlmopen, or after dlclose and dlopen. */
static void a_file_twice_in_a_process_is_two_modules(void **state)
{
	uint32_t a = send_module(&processes[0], "/lib/a.so", 0x7f0000000000, 1);
	uint32_t again = send_module(&processes[0], "/lib/a.so", 0x7d0000000000, 1);
	uint32_t same = send_module(&processes[0], "/lib/a.so", 0x7f0000000000, 1);
	uint32_t b = send_module(&processes[1], "/lib/a.so", 0x7e0000000000, 1);
	uint32_t first = number_of(&processes[0], 0x7f0000001234, ADDRESS_RETURN, a);
	uint32_t second = number_of(&processes[0], 0x7d0000001234, ADDRESS_RETURN, again);

	(void)state;
	assert_int_not_equal(first, second);
	assert_int_equal(number_of(&processes[0], 0x7f0000001234, ADDRESS_RETURN, same), first);
	assert_int_equal(number_of(&processes[1], 0x7e0000001234, ADDRESS_RETURN, b), first);
	assert_int_equal(table.n_modules, 2);
}

static void other_files_are_other_modules(void **state)
{
	uint32_t a = send_module(&processes[0], "/lib/a.so", 0x7f0000000000, 1);
	uint32_t first = number_of(&processes[0], 0x7f0000001234, ADDRESS_RETURN, a);
	uint32_t rebuilt = send_module(&processes[1], "/lib/a.so", 0x7e0000000000, 2);
	uint32_t moved = send_module(&processes[1], "/opt/a.so", 0x7d0000000000, 1);

	(void)state;
	assert_int_not_equal(number_of(&processes[1], 0x7e0000001234, ADDRESS_RETURN, rebuilt),
			     first);
	assert_int_not_equal(number_of(&processes[1], 0x7d0000001234, ADDRESS_RETURN, moved),
			     first);
	assert_int_equal(table.n_modules, 3);
}

/* Code that a process makes, and files that only it has under that name. */
static void what_is_a_processs_own_is_shared_with_none(void **state)
{
	static const char *const own[] = {"", "/memfd:jit", "/tmp/x.so (deleted)", "/dev/zero"};
	uint32_t none, numbers[4];

	(void)state;
	none = number_of(&processes[0], 0x1234000, ADDRESS_RETURN, CHANNEL_NO_MODULE);
	for (uint32_t i = 0; i < 4; i++) {
		uint64_t bias = 0x100000 * (uint64_t)(i + 1);

		numbers[i] = number_of(&processes[0], bias + 0x1234, ADDRESS_RETURN,
				       send_module(&processes[0], own[i], bias, 0));
	}
	assert_int_not_equal(number_of(&processes[1], 0x1234000, ADDRESS_RETURN, CHANNEL_NO_MODULE),
			     none);
	assert_int_equal(number_of(&processes[0], 0x1234000, ADDRESS_RETURN, CHANNEL_NO_MODULE),
			 none);
	for (uint32_t i = 0; i < 4; i++) {
		uint64_t bias = 0x100000 * (uint64_t)(i + 1);
		uint32_t module = send_module(&processes[1], own[i], bias, 0);

		assert_int_not_equal(
			number_of(&processes[1], bias + 0x1234, ADDRESS_RETURN, module),
			numbers[i]);
		assert_int_equal(table.modules[table.n_modules - 1].process, 2);
	}
	/* The marks of stacks that end early mean the same in all. */
	assert_int_equal(number_of(&processes[0], 0, ADDRESS_CUT_TOO_DEEP, CHANNEL_NO_MODULE),
			 number_of(&processes[1], 0, ADDRESS_CUT_TOO_DEEP, CHANNEL_NO_MODULE));
}

static void equal_functions_are_one(void **state)
{
	uint32_t f = send_code(&processes[0], "f", "a.py", 3);
	uint32_t unused = send_code(&processes[1], "g", "a.py", 3);
	uint32_t same = send_code(&processes[1], "f", "a.py", 3);
	uint32_t line = number_of(&processes[0], 4, ADDRESS_PYTHON, f);

	(void)state;
	assert_int_equal(number_of(&processes[1], 4, ADDRESS_PYTHON, same), line);
	assert_int_not_equal(number_of(&processes[1], 5, ADDRESS_PYTHON, same), line);
	assert_int_not_equal(number_of(&processes[1], 4, ADDRESS_PYTHON, unused), line);
	assert_int_equal(table.n_functions, 2);
	assert_int_equal(torsh_process_code_label(&processes[0].code, f + 1),
			 torsh_process_code_label(&processes[1].code, same + 1));
	assert_int_equal(torsh_process_code_label(&processes[1].code,
						  send_code(&processes[1], "f", "a.py", 4) + 1),
			 3);
	assert_int_equal(torsh_process_code_label(&processes[1].code, FAKE_CODES + 1), 0);
}

/* Many rows: the indexes grow, and find what they had. */
static void rows_are_found_in_tables_that_grow(void **state)
{
	uint32_t a = send_module(&processes[0], "/lib/a.so", 0x7f0000000000, 1);
	uint32_t b = send_module(&processes[1], "/lib/a.so", 0x7e0000000000, 1);
	uint32_t numbers[1000];

	(void)state;
	for (uint32_t i = 0; i < 1000; i++)
		numbers[i] = number_of(&processes[0], 0x7f0000002000 + i, ADDRESS_RETURN, a);
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(number_of(&processes[1], 0x7e0000002000 + i, ADDRESS_RETURN, b),
				 numbers[i]);
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 1000; i++) {
			char name[16];

			snprintf(name, sizeof(name), "f%u", i);
			assert_int_equal(
				torsh_code_function(&table,
						    &(struct code_function){.name = strdup(name),
									    .file = strdup("a.py"),
									    .first_line = i % 7}),
				i);
		}
	}
}

static void an_address_without_room_is_a_mark(void **state)
{
	struct code_address address = {.ip = 1, .module = CHANNEL_NO_MODULE, .process = 1};
	uint32_t last = 0;

	(void)state;
	for (uint32_t i = 0; i < CODE_ADDRESSES_MAX; i++, address.ip++)
		last = torsh_code_address(&table, &address);
	assert_int_equal(table.n_addresses, CODE_ADDRESSES_MAX);
	assert_int_equal(last, CODE_ADDRESSES_MAX - 1);
	assert_int_equal(table.addresses[last].flags, ADDRESS_CUT_TABLE_FULL);
	address.ip++;
	assert_int_equal(torsh_code_address(&table, &address), last);
	address.ip = 1;
	assert_int_equal(torsh_code_address(&table, &address), 0);
}

static void tables_live_as_long_as_a_process_of_their_program(void **state)
{
	struct program_tables_set set = {0};
	struct program_tables *one = torsh_program_tables_find(&set, "/bin/a", 1), *other;

	(void)state;
	torsh_program_tables_join(one);
	assert_ptr_equal(torsh_program_tables_find(&set, "/bin/a", 2), one);
	torsh_program_tables_join(one);
	other = torsh_program_tables_find(&set, "/bin/b", 3);
	torsh_program_tables_join(other);
	assert_ptr_not_equal(other, one);
	assert_int_equal(one->owner, 1);
	torsh_program_tables_leave(one);
	assert_ptr_equal(torsh_program_tables_find(&set, "/bin/a", 4), one);
	torsh_program_tables_leave(one);
	assert_int_equal(set.n, 1);
	one = torsh_program_tables_find(&set, "/bin/a", 5);
	torsh_program_tables_join(one);
	assert_int_equal(one->owner, 5);
	torsh_program_tables_leave(one);
	torsh_program_tables_leave(other);
	assert_int_equal(set.n, 0);
	torsh_program_tables_set_destroy(&set);
}

/* What ended processes left in tables is bounded: a session may start processes for ever. */
static void very_large_tables_are_not_joined(void **state)
{
	struct program_tables_set set = {0};
	struct program_tables *large = torsh_program_tables_find(&set, "/bin/a", 1), *next;

	(void)state;
	torsh_program_tables_join(large);
	for (uint32_t i = 0; i < CODE_ADDRESSES_MAX / 4 + 1; i++)
		torsh_code_address(&large->code, &(struct code_address){.ip = i + 1, .process = 1});
	next = torsh_program_tables_find(&set, "/bin/a", 2);
	torsh_program_tables_join(next);
	assert_ptr_not_equal(next, large);
	assert_ptr_equal(torsh_program_tables_find(&set, "/bin/a", 3), next);
	torsh_program_tables_leave(large);
	torsh_program_tables_leave(next);
	torsh_program_tables_set_destroy(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_file_at_two_places_is_one_module, start,
						finish),
		cmocka_unit_test_setup_teardown(a_file_twice_in_a_process_is_two_modules, start,
						finish),
		cmocka_unit_test_setup_teardown(other_files_are_other_modules, start, finish),
		cmocka_unit_test_setup_teardown(what_is_a_processs_own_is_shared_with_none, start,
						finish),
		cmocka_unit_test_setup_teardown(equal_functions_are_one, start, finish),
		cmocka_unit_test_setup_teardown(rows_are_found_in_tables_that_grow, start, finish),
		cmocka_unit_test_setup_teardown(an_address_without_room_is_a_mark, start, finish),
		cmocka_unit_test(tables_live_as_long_as_a_process_of_their_program),
		cmocka_unit_test(very_large_tables_are_not_joined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
