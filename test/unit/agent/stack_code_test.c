/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Captures through code with wrong, missing or replaced unwind information. Compared with
 * libunwind's.
 */
#include <stdbool.h>
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "agent/modules/maps.h"
#include "agent/modules/module_watch.h"
#include "agent/stack/unwind_rules.h"
#include "test/unit/fixtures/machine_code.h"
#include "test/unit/fixtures/stack_fixture.h"

static volatile int zero;

NOINLINE static void call_hook(void)
{
	hook();
	zero = 0; /* so that the call isn't a jump */
}

/* ---- code made at run time ---- */

typedef void code(void (*function)(void), uintptr_t garbage);

static code *make_code(const void *bytes, size_t n)
{
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	memcpy(memory, bytes, n);
	__builtin___clear_cache(memory, (char *)memory + n);
	return (code *)memory;
}

static code *run_twice;

static void run_framed_again(void)
{
	run_twice(call_hook, 0);
	zero = 0;
}

/* The frames outside of the made code are those that the caller has without it. */
NOINLINE static void expect_followed(code *framed)
{
	uint32_t outer[8], depth;

	for (int i = 0; i < 10; i++) {
		hook();
		depth = main_producer->depth;
		memcpy(outer, main_producer->ids, sizeof(outer));
		framed(call_hook, 0);
		assert_int_equal(main_producer->depth, depth + 2);
		assert_memory_equal(main_producer->ids, outer, (depth - 1) * sizeof(*outer));
		framed(run_framed_again, 0);
		assert_int_equal(main_producer->depth, depth + 4);
		assert_memory_equal(main_producer->ids, outer, (depth - 1) * sizeof(*outer));
	}
}

static void made_code_with_frame_pointers_is_followed(void **state)
{
	(void)state;
	begin_comparing();
	run_twice = make_code(framed_code, sizeof(framed_code));
	expect_followed(run_twice);
	expect_no_mismatch(30);
	assert_int_equal(outcome.n_cut, 0);
	munmap((void *)run_twice, 4096);
}

/* Its frame pointer is not what its sp was before the call. */
static void made_code_with_a_record_inside_of_its_frame_is_followed(void **state)
{
	(void)state;
	begin_comparing();
	run_twice = make_code(inner_record_code, sizeof(inner_record_code));
	expect_followed(run_twice);
	expect_no_mismatch(30);
	assert_int_equal(outcome.n_cut, 0);
	munmap((void *)run_twice, 4096);
}

static void made_code_without_frame_pointers_ends_the_stack_there(void **state)
{
	code *garbage = make_code(garbage_code, sizeof(garbage_code));
	uint64_t cut = counters[COUNTER_captures_cut];

	(void)state;
	begin_comparing();
	for (int i = 0; i < 10; i++) {
		garbage(call_hook, 0);
		assert_int_equal(addresses[main_producer->ids[0]].flags, ADDRESS_CUT_UNKNOWN_CODE);
		assert_int_equal(addresses[main_producer->ids[0]].ip,
				 (uintptr_t)garbage + GARBAGE_RETURN);
		assert_int_equal(addresses[main_producer->ids[1]].flags, ADDRESS_NO_UNWIND_INFO);
		garbage(call_hook, 1);
		/* below the stack pointer, perhaps */
		garbage(call_hook, (uintptr_t)&cut & ~(uintptr_t)4095);
		garbage(call_hook, UINTPTR_MAX - 7);
	}
	expect_no_mismatch(40);
	assert_true(counters[COUNTER_captures_cut] > cut);
	hook();
	assert_false(is_cut(main_producer));
	munmap((void *)garbage, 4096);
}

#define AREA_BYTES (512u << 10)

static struct {
	ucontext_t main, other;
	char *area; /* its lower half is a stack */
	code *garbage;
} coroutine;

/* A frame pointer into the upper half, first readable and leading to a false frame, then not. */
NOINLINE static void capture_only(void)
{
	capture(main_producer, __builtin_frame_address(0));
}

static void run_with_pointer_above(void)
{
	uintptr_t *false_frame = (uintptr_t *)(coroutine.area + AREA_BYTES / 2 + 64);

	false_frame[0] = (uintptr_t)(false_frame + 20);
	false_frame[1] = (uintptr_t)call_hook + 4;
	for (int i = 0; i < 3; i++)
		coroutine.garbage(capture_only, (uintptr_t)false_frame);
	assert_int_equal(mprotect(coroutine.area + AREA_BYTES / 2, AREA_BYTES / 2, PROT_NONE), 0);
	for (int i = 0; i < 3; i++)
		coroutine.garbage(capture_only, (uintptr_t)false_frame);
}

static void run_coroutine(void (*function)(void))
{
	coroutine.area =
		mmap(NULL, AREA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(coroutine.area, MAP_FAILED);
	getcontext(&coroutine.other);
	coroutine.other.uc_stack.ss_sp = coroutine.area;
	coroutine.other.uc_stack.ss_size = AREA_BYTES / 2 - 32768;
	coroutine.other.uc_link = &coroutine.main;
	FRAME_POINTER_OF(coroutine.other) = (uintptr_t)(coroutine.area + AREA_BYTES / 2 + 64);
	makecontext(&coroutine.other, function, 0);
	swapcontext(&coroutine.main, &coroutine.other);
	munmap(coroutine.area, AREA_BYTES);
}

static void a_frame_pointer_to_unreadable_memory_does_no_harm(void **state)
{
	(void)state;
	coroutine.garbage = make_code(garbage_code, sizeof(garbage_code));
	run_coroutine(run_with_pointer_above);
	assert_true(is_cut(main_producer));
	munmap((void *)coroutine.garbage, 4096);
}

static void run_hooks(void)
{
	for (int i = 0; i < 10; i++)
		call_hook();
	assert_false(is_cut(main_producer));
	assert_int_equal(addresses[main_producer->ids[0]].flags, ADDRESS_RETURN);
}

/*
 * Nothing describes what lies before the function that it leads to in the end; the frame pointer is
 * another stack's.
 */
static void stacks_of_makecontext_end_where_it_made_them_begin(void **state)
{
	uint64_t cut = counters[COUNTER_captures_cut];

	(void)state;
	begin_comparing();
	run_coroutine(run_hooks);
	expect_no_mismatch(10);
	assert_int_equal(counters[COUNTER_captures_cut], cut);
}

/* ---- assembly ---- */

/* libunwind takes another way here, and loses it: the expected frames are fixed. */
NOINLINE static void assembly_without_information_is_passed_by_the_frame_pointer(void **state)
{
	uint32_t outer[8], depth;

	(void)state;
	for (int i = 0; i < 10; i++) {
		hook();
		depth = main_producer->depth;
		memcpy(outer, main_producer->ids, sizeof(outer));
		call_without_information(call_hook);
		/*
		 * The function that keeps the frame pointer, this one, is skipped; two are there
		 * instead.
		 */
		assert_int_equal(main_producer->depth, depth + 1);
		assert_memory_equal(main_producer->ids, outer, (depth - 1) * sizeof(*outer));
		assert_int_equal(addresses[main_producer->ids[depth - 1]].flags,
				 ADDRESS_NO_UNWIND_INFO);
	}
}

static void call_register_again(void)
{
	call_through_register(call_hook);
	hook();
}

/* That register can only be restored from the registers of the innermost frame. */
static void frames_found_through_another_register_are_walked_with_all_registers(void **state)
{
	uint64_t slow = counters[COUNTER_captures_slow];

	(void)state;
	begin_comparing();
	for (int i = 0; i < 10; i++) {
		call_through_register(call_hook);
		call_through_register(call_register_again);
		hook();
	}
	expect_no_mismatch(40);
	assert_int_equal(outcome.n_cut, 0);
	assert_true(counters[COUNTER_captures_slow] >= slow + 30);
}

/* ---- libraries that follow each other at one address ---- */

/* The Makefile builds it beside the tests. */
static void *open_library(const char *name)
{
	char path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);

	assert_true(n > 0);
	path[n] = '\0';
	*strrchr(path, '/') = '\0';
	strcat(path, "/../../programs/");
	strcat(path, name);
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

typedef void twin(void (*function)(void));

static void *run_in_library(const char *library_name, const char *first_name)
{
	void *library = open_library(library_name);
	twin *first, *second;

	if (!library)
		fail_msg("%s", dlerror());
	second = (twin *)dlsym(library, "twin");
	first = first_name ? (twin *)dlsym(library, first_name) : second;
	assert_non_null(first);
	assert_non_null(second);
	first(call_hook);
	second(call_hook);
	second(call_hook);
	dlclose(library);
	return (void *)second;
}

static void a_library_in_anothers_place_has_its_own_rules(void **state)
{
	(void)state;
	begin_comparing();
	for (int i = 0; i < 5; i++) {
		void *small = run_in_library("libtwin_small.so", NULL), *large;

		torsh_stack_invalidate_code();
		large = run_in_library("libtwin_large.so", NULL);
		if (IS_PLACE_REUSED)
			assert_ptr_equal(large, small);
		torsh_stack_invalidate_code();
		hook();
	}
	expect_no_mismatch(35);
}

/*
 * As when the C library closes its own modules: the first unknown address in the new library shows
 * it.
 */
static void a_library_that_was_replaced_unnoticed_is_noticed(void **state)
{
	uint32_t generation;

	(void)state;
	torsh_stack_invalidate_code();
	begin_comparing();
	run_in_library("libtwin_small.so", "call_small");
	generation = torsh_unwind_rules_generation;
	run_in_library("libtwin_large.so", "call_large");
	if (IS_PLACE_REUSED)
		assert_true(torsh_unwind_rules_generation > generation);
	expect_no_mismatch(6);
}

static void closing_a_library_that_stays_forgets_nothing(void **state)
{
	uint32_t generation, before;

	(void)state;
	torsh_stack_invalidate_code();
	hook();
	generation = torsh_unwind_rules_generation;
	for (volatile int i = 0; i < 3; i++) {
		before = n_addresses;
		dlclose(dlopen(LOADED_LIBRARY, RTLD_NOW));
		torsh_stack_invalidate_code();
		hook();
		if (i > 0)
			assert_int_equal(n_addresses, before);
	}
	assert_int_equal(torsh_unwind_rules_generation, generation);
}

static void expect_loaders_map(const void *code)
{
	struct link_map *map = NULL;
	struct module module;
	Dl_info info;

	assert_true(dladdr1(code, &info, (void **)&map, RTLD_DL_LINKMAP));
	assert_true(torsh_modules_find((uintptr_t)code, &module) != MODULE_NONE);
	assert_ptr_equal(module.link_map, map);
}

/* What it does where the C library has no _dl_find_object. Those behind it: it stays so. */
static void objects_are_found_without_the_c_librarys_help(void **state)
{
	(void)state;
	torsh_unwind_rules_start(false);
	torsh_unwind_rules_flush(0, UINTPTR_MAX);
	begin_comparing();
	call_register_again();
	call_through_register(call_hook);
	expect_no_mismatch(3);
	assert_int_equal(outcome.n_cut, 0);
	run_in_library("libtwin_small.so", NULL);
	torsh_stack_invalidate_code();
	run_in_library("libtwin_large.so", NULL);
	expect_no_mismatch(9);
	/* Names and lines of frames, and those of Python, are found by these. */
	expect_loaders_map((const void *)hook);
	expect_loaders_map((const void *)qsort);
}

static void without_its_help_too_a_replaced_library_is_noticed(void **state)
{
	a_library_in_anothers_place_has_its_own_rules(state);
	a_library_that_was_replaced_unnoticed_is_noticed(state);
}

static void without_its_help_too_a_library_that_stays_is_not_forgotten(void **state)
{
	closing_a_library_that_stays_forgets_nothing(state);
}

/*
 * What lies in the program, in the C library, on the heap, and before all of them. Last: files stay
 * closed.
 */
static void objects_are_found_without_opening_a_file(void **state)
{
	const uintptr_t codes[] = {(uintptr_t)hook, (uintptr_t)qsort,
				   (uintptr_t)dlopen("libtwin_small.so", RTLD_NOW)};
	struct module read, listed;

	(void)state;
	assert_true(torsh_maps_find(codes[0], &read));
	torsh_maps_forbid();
	assert_true(torsh_maps_find(codes[0], &listed));
	assert_memory_equal(&listed, &read, sizeof(read));
	assert_true(torsh_maps_find(codes[1], &listed));
	assert_true(listed.start <= codes[1] && codes[1] < listed.end && listed.link_map);
	/* A link_map lies on the heap. */
	assert_false(torsh_maps_find(codes[2], &listed));
	assert_false(torsh_maps_find(4096, &listed));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(made_code_with_frame_pointers_is_followed),
		cmocka_unit_test(made_code_with_a_record_inside_of_its_frame_is_followed),
		cmocka_unit_test(made_code_without_frame_pointers_ends_the_stack_there),
		cmocka_unit_test(a_frame_pointer_to_unreadable_memory_does_no_harm),
		cmocka_unit_test(stacks_of_makecontext_end_where_it_made_them_begin),
		cmocka_unit_test(assembly_without_information_is_passed_by_the_frame_pointer),
		cmocka_unit_test(
			frames_found_through_another_register_are_walked_with_all_registers),
		cmocka_unit_test(a_library_in_anothers_place_has_its_own_rules),
		cmocka_unit_test(a_library_that_was_replaced_unnoticed_is_noticed),
		cmocka_unit_test(closing_a_library_that_stays_forgets_nothing),
		cmocka_unit_test(objects_are_found_without_the_c_librarys_help),
		cmocka_unit_test(without_its_help_too_a_replaced_library_is_noticed),
		cmocka_unit_test(without_its_help_too_a_library_that_stays_is_not_forgotten),
		cmocka_unit_test(objects_are_found_without_opening_a_file),
	};

	return cmocka_run_group_tests(tests, start_fixture, stop_fixture);
}
