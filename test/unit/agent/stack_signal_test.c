/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Captures in signal handlers, each compared with libunwind. Most come from running code in single
 * steps: the handler of SIGTRAP takes a stack at every instruction, prologues, linkage tables and
 * the dynamic linker's included.
 */
#include <stdbool.h>
#include <alloca.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>

#include "test/unit/fixtures/stack_fixture.h"
#include "test/unit/fixtures/stepping.h"

static _Atomic uint64_t n_cut_in_code;

/*
 * glibc 2.41's __memmove_chk runs into the function behind it through padding, which no unwind
 * information covers: nobody finds a caller there. What fills it are no-operations, nop and nopw
 * with their prefixes.
 */
static bool is_padding(uintptr_t ip)
{
	const uint8_t *at = (const uint8_t *)ip;

	while (*at == 0x66 || *at == 0x2e)
		at++;
#ifdef __aarch64__
	return memcmp(at, "\x1f\x20\x03\xd5", 4) == 0;
#endif
	return at[0] == 0x90 || (at[0] == 0x0f && at[1] == 0x1f);
}

NOINLINE static void hook_in_signal(void)
{
	capture(signal_producer, __builtin_frame_address(0));
	n_cut_in_code +=
		is_cut(signal_producer) && !is_padding(addresses[signal_producer->ids[0]].ip);
	compare(signal_producer, __builtin_dwarf_cfa());
}

static volatile int zero;
static _Atomic uint64_t n_signals;

FRAMELESS static int helper_of_handler(int n)
{
	hook_in_signal();
	return n + zero;
}

static void handle(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
	after_trap();
	n_signals++;
	hook_in_signal();
	helper_of_handler(1);
}

static void set_handler(int number, int flags)
{
	struct sigaction action = {.sa_sigaction = handle,
				   .sa_flags = SA_SIGINFO | SA_RESTART | flags};

	assert_int_equal(sigaction(number, &action, NULL), 0);
}

static void use_signal_stack(void)
{
	static char memory[1 << 18];
	stack_t stack = {.ss_sp = memory, .ss_size = sizeof(memory)};

	assert_int_equal(sigaltstack(&stack, NULL), 0);
}

/* ---- things to step through ---- */

static int compare_ints(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

FRAMELESS static int sort_some(int n)
{
	int numbers[] = {5, 3, n, 1, 9, 2};

	qsort(numbers, 6, sizeof(int), compare_ints);
	return numbers[0];
}

FRAMELESS static int use_room(int n)
{
	volatile char *room = alloca((size_t)n % 100 + 1);
	volatile char array[n % 30 + 1];

	room[0] = array[0] = (char)n;
	return room[0] + array[0];
}

FRAMELESS static int align_frame(int n)
{
	volatile char room[64] __attribute__((aligned(64)));
	volatile char *more = alloca((size_t)n % 100 + 1);

	room[0] = more[0] = (char)n;
	return use_room(n) + room[0] + more[0];
}

FRAMELESS static int call_the_vdso(int n)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return n + (int)t.tv_nsec;
}

FRAMELESS static int print_some(int n)
{
	char text[100];

	return snprintf(text, sizeof(text), "%d %s %.3f", n, "words", 1.5);
}

/*
 * Bound on first use: the first call runs through the dynamic linker, which saves all argument
 * registers.
 */
FRAMELESS static int bind_lazily(int n)
{
	return (int)(strtold("1.5", NULL) + (long double)strcspn("abc", "c")) + n;
}

static int (*const paces[])(int) = {
	bind_lazily, sort_some, use_room, align_frame, call_the_vdso, print_some,
};

static void step_through_everything(void)
{
	begin_comparing();
	n_signals = n_cut_in_code = 0;
	for (size_t i = 0; i < sizeof(paces) / sizeof(*paces); i++) {
		step_through(paces[i], (int)i);
	}
}

static void every_instruction_can_be_interrupted(void **state)
{
	(void)state;
	set_handler(SIGTRAP, 0);
	step_through_everything();
	expect_no_mismatch(FEWEST_STEPPED);
	assert_int_equal(n_cut_in_code, 0);
}

static void every_instruction_can_be_interrupted_on_a_signal_stack(void **state)
{
	(void)state;
	use_signal_stack();
	set_handler(SIGTRAP, SA_ONSTACK);
	step_through_everything();
	expect_no_mismatch(FEWEST_STEPPED);
	assert_int_equal(n_cut_in_code, 0);
}

#ifdef HAS_SINGLE_STEPS

FRAMELESS static int jump_back(int n)
{
	jmp_buf back;

	if (setjmp(back) == 0)
		longjmp(back, 1);
	return n;
}

FRAMELESS static int jump_by_context(int n)
{
	static ucontext_t context;
	volatile int turn = 0;

	getcontext(&context);
	if (turn++ == 0)
		setcontext(&context);
	return n;
}

/* The trampoline of the dynamic linker finds its frame through rbx. */
static void interrupted_lazy_binding_is_walked_with_all_registers(void **state)
{
	uint64_t slow = counters[COUNTER_captures_slow];
	volatile int n;

	(void)state;
	use_signal_stack();
	set_handler(SIGTRAP, SA_ONSTACK);
	begin_comparing();
	begin_stepping();
	n = strverscmp("a1", "a2");
	n += (int)lgamma(n);
	end_stepping();
	expect_no_mismatch(100);
	if (counters[COUNTER_captures_slow] == slow) {
		print_message("this toolchain binds everything at the start\n");
		skip();
	}
}

static _Atomic uint64_t n_without_outer_frames;

static void handle_within_main_producer(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
	n_signals++;
	capture(signal_producer, __builtin_frame_address(0));
	for (uint32_t i = 0; i + 1 < main_producer->depth; i++) {
		if (signal_producer->ids[i] != main_producer->ids[i] ||
		    i >= signal_producer->depth) {
			n_without_outer_frames++;
			return;
		}
	}
}

/*
 * Their unwind information has the target in registers, rsp included: libunwind cannot follow that.
 */
NOINLINE static void interrupted_jumps_show_the_frames_that_they_lead_to(void **state)
{
	struct sigaction action = {.sa_sigaction = handle_within_main_producer,
				   .sa_flags = SA_SIGINFO};

	(void)state;
	assert_int_equal(sigaction(SIGTRAP, &action, NULL), 0);
	n_signals = n_without_outer_frames = 0;
	hook();
	begin_stepping();
	jump_back(1);
	jump_by_context(1);
	end_stepping();
	assert_true(n_signals > 50);
	assert_int_equal(n_without_outer_frames, 0);
}

#endif

/* ---- signals at any time ---- */

/* Most of the time goes into captures, so that these are what signals interrupt. */
NOINLINE static void hook_sometimes_compared(void)
{
	static unsigned n;

	capture(main_producer, __builtin_frame_address(0));
	if (++n % 64 == 0)
		compare(main_producer, __builtin_dwarf_cfa());
}

static int nest(unsigned seed, int depth)
{
	volatile char room[seed % 64 + 1];
	int n = 0;

	room[0] = 1;
	if (depth > 0)
		n = nest(seed * 7 + 1, depth - 1) + compare_ints(&n, &depth);
	hook_sometimes_compared();
	return n + room[0];
}

static void timers_interrupt_captures_in_the_middle(void **state)
{
	struct itimerval often = {.it_interval = {.tv_usec = 300}, .it_value = {.tv_usec = 300}},
			 never = {0};

	(void)state;
	use_signal_stack();
	set_handler(SIGALRM, SA_ONSTACK);
	begin_comparing();
	n_signals = 0;
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	for (unsigned i = 0; i < 10000000 && n_signals < 1000; i++)
		nest(i, 10);
	setitimer(ITIMER_REAL, &never, NULL);
	assert_true(n_signals >= 1000);
	expect_no_mismatch(1500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_instruction_can_be_interrupted),
		cmocka_unit_test(every_instruction_can_be_interrupted_on_a_signal_stack),
#ifdef HAS_SINGLE_STEPS
		cmocka_unit_test(interrupted_lazy_binding_is_walked_with_all_registers),
		cmocka_unit_test(interrupted_jumps_show_the_frames_that_they_lead_to),
#endif
		cmocka_unit_test(timers_interrupt_captures_in_the_middle),
	};

	return cmocka_run_group_tests(tests, start_fixture, stop_fixture);
}
