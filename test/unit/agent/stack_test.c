/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Captures of all kinds of frames and sequences of calls, each compared with libunwind. */
#include <alloca.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "test/unit/fixtures/stack_fixture.h"

static volatile int zero; /* unknown to the compiler: calls stay calls */

/* ---- frames of different shapes, nested at random ---- */

static int nest(unsigned seed, int depth);

FRAMELESS static int plain(unsigned seed, int depth)
{
	hook();
	return nest(seed * 3, depth) + 1;
}

NOINLINE static int with_frame_pointer(unsigned seed, int depth)
{
	return nest(seed, depth) + zero;
}

FRAMELESS static int with_alloca(unsigned seed, int depth)
{
	volatile char *room = alloca(16 + seed % 200);

	room[0] = 1;
	hook();
	return nest(seed, depth) + room[0];
}

FRAMELESS static int with_array(unsigned seed, int depth)
{
	volatile char room[seed % 300 + 1];

	room[0] = 1;
	return nest(seed, depth) + room[0];
}

/*
 * Aligned beyond what the ABI gives, and of variable size: the frame that is found through a saved
 * pointer.
 */
FRAMELESS static int aligned(unsigned seed, int depth)
{
	volatile char room[64] __attribute__((aligned(64)));
	volatile char *more = alloca(seed % 100 + 1);

	assert_true((uintptr_t)room % 64 == 0);
	room[0] = more[0] = 1;
	hook();
	return nest(seed, depth) + room[0] + more[0];
}

FRAMELESS static int with_large_frame(unsigned seed, int depth)
{
	volatile char room[40000];

	room[0] = room[39999] = 1;
	return nest(seed, depth) + room[0] + room[39999];
}

/* Six registers pushed, rbp among them as one like any other. */
FRAMELESS static int with_many_registers(unsigned seed, int depth)
{
	int a = nest(seed, depth - 2) + zero, b = a + zero, c = b * 3 + zero, d = c ^ zero,
	    e = d + b * zero;

	hook();
	return a + b * c + d * e + zero;
}

static int compare_ints(const void *a, const void *b)
{
	if (*(const int *)a == 3)
		hook();
	return *(const int *)a - *(const int *)b;
}

FRAMELESS static int sorting(unsigned seed, int depth)
{
	int numbers[] = {5, 3, (int)(seed % 7), 1};

	qsort(numbers, 4, sizeof(int), compare_ints);
	return nest(seed, depth) + numbers[0];
}

FRAMELESS static int jumping(unsigned seed, int depth)
{
	jmp_buf back;

	if (setjmp(back) == 0) {
		nest(seed, depth / 2);
		hook();
		longjmp(back, 1);
	}
	hook();
	return nest(seed, depth);
}

static int nest(unsigned seed, int depth)
{
	static int (*const shapes[])(unsigned, int) = {
		plain,	 with_frame_pointer, with_alloca,	  with_array,
		aligned, with_large_frame,   with_many_registers, sorting,
		jumping,
	};

	if (depth <= 0) {
		hook();
		return 0;
	}
	seed = seed * 1103515245 + 12345;
	return shapes[(seed >> 16) % 9](seed, depth - 1);
}

static void stacks_of_all_shapes_equal_the_reference_unwinders(void **state)
{
	(void)state;
	begin_comparing();
	for (unsigned seed = 0; seed < 600; seed++)
		nest(seed, 4 + (int)(seed % 20));
	expect_no_mismatch(10000);
	assert_int_equal(outcome.n_cut, 0);
}

/* ---- what the cache does ---- */

FRAMELESS static void call_hook_twice(void)
{
	hook();
	hook();
}

static void a_loop_pushes_one_frame_a_call(void **state)
{
	(void)state;
	call_hook_twice();
	for (int i = 0; i < 10; i++) {
		hook();
		/* The compiler may have made the first turn a call of its own. */
		if (i > 1)
			assert_int_equal(main_producer->last_pop, 0);
	}
	call_hook_twice();
	assert_int_equal(main_producer->last_pop, 1);
}

/*
 * The same inner frames below another call in the outermost function: only the saved addresses
 * differ.
 */
FRAMELESS static int inner(int n)
{
	hook();
	return n + zero;
}

FRAMELESS static int middle(int n)
{
	return inner(n) + inner(n + 1) + zero;
}

FRAMELESS static int outer(int n)
{
	return middle(n) + middle(n + 1) + zero;
}

static void a_changed_outer_call_is_seen_through_equal_inner_frames(void **state)
{
	(void)state;
	begin_comparing();
	for (int i = 0; i < 100; i++)
		outer(i);
	expect_no_mismatch(400);
}

FRAMELESS static int recurse(int depth, int step)
{
	volatile char room[24];

	room[0] = (char)depth;
	if (depth % step == 0)
		hook();
	return (depth > 0 ? recurse(depth - 1, step) : 0) + room[0];
}

static void stacks_deeper_than_the_cache_keep_their_inner_frames(void **state)
{
	(void)state;
	begin_comparing();
	recurse(3000, 1);
	expect_no_mismatch(3000);
	assert_true(outcome.n_cut > 1500);
	assert_true(outcome.n_deepest <= STACK_MAX_FRAMES);
	for (int i = 0; i < 100; i++)
		recurse(1200 - i * 10, 7);
	expect_no_mismatch(3000);
	hook();
	assert_false(is_cut(main_producer));
}

FRAMELESS static int return_and_grow(int depth, int leaves)
{
	volatile char room[24];

	room[0] = (char)depth;
	if (depth == 0) {
		for (int i = 0; i < leaves; i++)
			recurse(i % 40, 10);
		hook();
		return 0;
	}
	leaves = return_and_grow(depth - 1, leaves);
	hook();
	return leaves + room[0];
}

static void a_deep_stack_that_shrinks_shows_its_outer_frames_again(void **state)
{
	(void)state;
	begin_comparing();
	return_and_grow(2500, 200);
	expect_no_mismatch(2500);
	assert_false(is_cut(main_producer));
	hook();
	assert_false(is_cut(main_producer));
}

static void a_deep_stack_keeps_enough_inner_frames(void **state)
{
	(void)state;
	recurse(5000, 5000);
	assert_true(is_cut(main_producer) || main_producer->depth < STACK_MAX_FRAMES);
	assert_int_equal(addresses[main_producer->ids[0]].flags == ADDRESS_CUT_TOO_DEEP,
			 is_cut(main_producer));
}

/* Two ways to the hook, of two frames each: the second time each is found by its cached suffix. */
FRAMELESS static int one_way(void)
{
	hook();
	return zero;
}

FRAMELESS static int other_way(void)
{
	hook();
	return zero + 1;
}

FRAMELESS static int take_turns(int n)
{
	int sum = zero;

	for (int i = 0; i < n; i++)
		sum += i % 2 ? one_way() : other_way();
	return sum;
}

FRAMELESS static int take_turns_at(int depth, int n)
{
	volatile char room[24];

	room[0] = (char)depth;
	return (depth > 0 ? take_turns_at(depth - 1, n) : take_turns(n)) + room[0];
}

/* Where a tail's frames fit in no more, and with those before and behind. */
static void cached_suffixes_are_right_where_the_cache_is_full(void **state)
{
	enum { MARGIN = 40, TURNS = 6 };

	(void)state;
	for (int depth = STACK_MAX_FRAMES - MARGIN; depth < STACK_MAX_FRAMES + MARGIN; depth++) {
		hook();
		assert_false(is_cut(main_producer));
		begin_comparing();
		take_turns_at(depth, TURNS);
		expect_no_mismatch(TURNS);
		assert_true(outcome.n_deepest <= STACK_MAX_FRAMES);
	}
	/* The whole of a stack that is nearly as deep as can be, by tails alone. */
	hook();
	begin_comparing();
	for (int i = 0; i < 100; i++)
		take_turns_at(STACK_MAX_FRAMES - MARGIN - i % 2, 2);
	expect_no_mismatch(200);
	assert_int_equal(outcome.n_cut, 0);
}

static void a_reset_stack_sends_every_frame_again(void **state)
{
	uint32_t depth;

	(void)state;
	hook();
	depth = main_producer->depth;
	torsh_stack_reset(main_producer->stack);
	main_producer->depth = 500;
	hook();
	assert_int_equal(main_producer->last_pop, STACK_POP_ALL);
	assert_int_equal(main_producer->depth, depth);
}

static void one_address_has_one_id(void **state)
{
	uint32_t before = 0;

	(void)state;
	for (volatile int i = 0; i < 100; i++) {
		nest(7, 12);
		if (i == 0)
			before = n_addresses;
	}
	assert_int_equal(n_addresses, before);
}

/* ---- other stacks, threads, processes ---- */

#define COROUTINE_BYTES (2u << 20)
static ucontext_t main_context, coroutine_context;

static void coroutine(void)
{
	for (int i = 0; i < 3; i++) {
		nest((unsigned)i, 6);
		hook();
		swapcontext(&coroutine_context, &main_context);
		hook();
	}
}

NOINLINE static void run_coroutine(size_t stack_bytes)
{
	void *memory =
		mmap(NULL, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	getcontext(&coroutine_context);
	coroutine_context.uc_stack.ss_sp = memory;
	coroutine_context.uc_stack.ss_size = stack_bytes;
	coroutine_context.uc_link = &main_context;
	makecontext(&coroutine_context, coroutine, 0);
	for (int turn = 0; turn < 3; turn++) {
		swapcontext(&main_context, &coroutine_context);
		hook();
	}
	munmap(memory, stack_bytes);
	hook();
}

static void coroutines_with_unmapped_stacks_do_no_harm(void **state)
{
	(void)state;
	begin_comparing();
	/* Stacks of two sizes, so that one's pages are missing beyond the other's end. */
	for (int i = 0; i < 300; i++)
		run_coroutine(i % 2 ? COROUTINE_BYTES : COROUTINE_BYTES / 2);
	expect_no_mismatch(3000);
}

static void *thread_body(void *seed)
{
	make_producers();
	for (unsigned i = 0; i < 20; i++)
		nest((unsigned)(uintptr_t)seed + i, 10);
	destroy_producers();
	return NULL;
}

static void threads_come_and_go(void **state)
{
	(void)state;
	begin_comparing();
	for (uintptr_t round = 0; round < 25; round++) {
		pthread_t threads[4];

		for (uintptr_t i = 0; i < 4; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, thread_body,
							(void *)(round * 4 + i)),
					 0);
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
	}
	expect_no_mismatch(5000);
}

static void a_forked_child_goes_on_with_its_own_stack(void **state)
{
	int status;
	pid_t child;

	(void)state;
	begin_comparing();
	hook();
	child = fork();
	if (child == 0) {
		torsh_stack_reset(main_producer->stack);
		nest(3, 12);
		_exit(outcome.n_mismatches == 0 && outcome.n_bad_deltas == 0 &&
				      outcome.n_compared > 2
			      ? 0
			      : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	hook();
	expect_no_mismatch(2);
}

static void the_built_in_check_counts_what_it_compares(void **state)
{
	uint64_t checked = counters[COUNTER_captures_checked];

	(void)state;
	assert_int_equal(torsh_stack_check_every(2), 0);
	for (int i = 0; i < 10; i++)
		nest(5, 10);
	assert_int_equal(torsh_stack_check_every(0), 0);
	assert_true(counters[COUNTER_captures_checked] >= checked + 5);
	assert_int_equal(counters[COUNTER_captures_differing], 0);
	checked = counters[COUNTER_captures_checked];
	nest(5, 10);
	assert_int_equal(counters[COUNTER_captures_checked], checked);
}

#ifdef __ARM_FEATURE_PAC_DEFAULT

/* So that the other cases prove something: a signature may be 0, but seldom is. */
NOINLINE static int count_signed(int depth)
{
	const uintptr_t *record = __builtin_frame_address(0);
	int is_signed = record[1] != (uintptr_t)__builtin_return_address(0);

	return (depth > 0 ? count_signed(depth - 1) : 0) + is_signed + zero;
}

static void return_addresses_are_signed(void **state)
{
	(void)state;
	assert_true(count_signed(100) > 50);
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef __ARM_FEATURE_PAC_DEFAULT
		cmocka_unit_test(return_addresses_are_signed),
#endif
		cmocka_unit_test(stacks_of_all_shapes_equal_the_reference_unwinders),
		cmocka_unit_test(a_loop_pushes_one_frame_a_call),
		cmocka_unit_test(a_changed_outer_call_is_seen_through_equal_inner_frames),
		cmocka_unit_test(stacks_deeper_than_the_cache_keep_their_inner_frames),
		cmocka_unit_test(a_deep_stack_that_shrinks_shows_its_outer_frames_again),
		cmocka_unit_test(a_deep_stack_keeps_enough_inner_frames),
		cmocka_unit_test(cached_suffixes_are_right_where_the_cache_is_full),
		cmocka_unit_test(a_reset_stack_sends_every_frame_again),
		cmocka_unit_test(one_address_has_one_id),
		cmocka_unit_test(coroutines_with_unmapped_stacks_do_no_harm),
		cmocka_unit_test(threads_come_and_go),
		cmocka_unit_test(a_forked_child_goes_on_with_its_own_stack),
		cmocka_unit_test(the_built_in_check_counts_what_it_compares),
	};

	return cmocka_run_group_tests(tests, start_fixture, stop_fixture);
}
