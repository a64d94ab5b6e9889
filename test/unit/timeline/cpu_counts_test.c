/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Sums of counters of the CPU, what follows from them, and the sentences: by numbers worked out by
 * hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "tools/report/counters/cpu_counters.h"

#define ALL ((1u << N_CPU_COUNTERS) - 1)
#define HARDWARE ((1u << N_CPU_HARDWARE_COUNTERS) - 1)

static struct event software(uint32_t has, uint64_t task_ns, uint64_t faults)
{
	return (struct event){
		.id = EVENT_CPU_COUNTS,
		.cpu_counts = {.has = has, .task_clock_ns = task_ns, .minor_faults = faults}};
}

static struct event hardware(uint64_t cycles, uint64_t instructions, uint64_t l1d, uint64_t llc,
			     uint64_t dtlb)
{
	return (struct event){.id = EVENT_CPU_HARDWARE_COUNTS,
			      .cpu_hardware_counts = {.cycles = cycles,
						      .instructions = instructions,
						      .l1d_misses = l1d,
						      .llc_misses = llc,
						      .dtlb_misses = dtlb,
						      .enabled_0_ns = 100,
						      .running_0_ns = 100,
						      .enabled_1_ns = 100,
						      .running_1_ns = 100}};
}

static void take(struct cpu_counts *counts, const struct event event)
{
	torsh_cpu_counts_take(counts, &event);
}

static double value_of(const struct cpu_counts *counts, enum cpu_counter counter)
{
	double value = -1;

	return torsh_cpu_counts_value(counts, counter, &value) ? value : NAN;
}

static void counts_add_up(void **state)
{
	struct cpu_counts counts = {0}, sum = {0};
	double ipc;

	(void)state;
	take(&counts, software(ALL, 50, 3));
	take(&counts, hardware(1000, 2500, 10, 5, 1));
	take(&counts, software(ALL, 70, 4));
	take(&counts, hardware(1000, 1500, 10, 5, 1));
	torsh_cpu_counts_add(&sum, &counts);
	torsh_cpu_counts_add(&sum, &(struct cpu_counts){0});
	torsh_cpu_counts_add(&sum, &counts);
	assert_int_equal(sum.n, 4);
	assert_true(value_of(&sum, CPU_COUNTER_TASK_CLOCK) == 240);
	assert_true(value_of(&sum, CPU_COUNTER_MINOR_FAULTS) == 14);
	assert_true(value_of(&sum, CPU_COUNTER_INSTRUCTIONS) == 8000);
	assert_true(torsh_cpu_counts_ratio(&sum, CPU_COUNTER_INSTRUCTIONS, CPU_COUNTER_CYCLES, 1,
					   &ipc));
	assert_true(ipc == 2);
	assert_true(torsh_cpu_counts_ratio(&sum, CPU_COUNTER_L1D_MISSES, CPU_COUNTER_INSTRUCTIONS,
					   1000, &ipc));
	assert_true(ipc == 5);
}

static void a_base_counts_nothing(void **state)
{
	struct event base = software(ALL, 0, 0);
	struct cpu_counts counts = {0};

	(void)state;
	base.cpu_counts.is_base = 1;
	take(&counts, base);
	assert_int_equal(counts.n, 0);
	assert_true(isnan(value_of(&counts, CPU_COUNTER_TASK_CLOCK)));
}

static void a_counter_that_one_part_lacks_is_unknown(void **state)
{
	struct cpu_counts counts = {0};

	(void)state;
	take(&counts, software(ALL, 5, 0));
	take(&counts, software(ALL & ~(1u << CPU_COUNTER_MIGRATIONS), 5, 0));
	assert_true(isnan(value_of(&counts, CPU_COUNTER_MIGRATIONS)));
	assert_true(value_of(&counts, CPU_COUNTER_TASK_CLOCK) == 10);
}

static void a_shared_pmu_is_extrapolated_by_its_group(void **state)
{
	struct event event = hardware(300, 600, 40, 20, 10);
	struct cpu_counts counts = {0};

	(void)state;
	event.cpu_hardware_counts.enabled_1_ns = 200;
	event.cpu_hardware_counts.running_1_ns = 50;
	take(&counts, software(ALL, 5, 0));
	take(&counts, event);
	assert_true(value_of(&counts, CPU_COUNTER_CYCLES) == 300);
	assert_true(value_of(&counts, CPU_COUNTER_L1D_MISSES) == 160);
	assert_true(torsh_cpu_counts_share(&counts, CPU_COUNTER_LLC_MISSES) == 0.25);
	assert_true(torsh_cpu_counts_share(&counts, CPU_COUNTER_CYCLES) == 1);
	/* The group's next turn comes in another piece: the sum of both is extrapolated. */
	event.cpu_hardware_counts.running_1_ns = 150;
	event.cpu_hardware_counts.l1d_misses = 80;
	take(&counts, software(ALL, 5, 0));
	take(&counts, event);
	assert_true(value_of(&counts, CPU_COUNTER_L1D_MISSES) == 240);
	/* It had no turn at all. */
	counts.groups[1].running_ns = 0;
	assert_true(isnan(value_of(&counts, CPU_COUNTER_L1D_MISSES)));
	assert_true(value_of(&counts, CPU_COUNTER_CYCLES) == 600);
}

static struct cpu_counts with(uint64_t instructions, uint64_t l1d, uint64_t llc, uint64_t dtlb)
{
	struct cpu_counts counts = {0};

	take(&counts, software(ALL, 5, 0));
	take(&counts, hardware(instructions, instructions, l1d, llc, dtlb));
	return counts;
}

static enum access_pattern pattern_of(uint64_t l1d, uint64_t llc, uint64_t dtlb)
{
	const struct cpu_counts counts = with(1000000, l1d, llc, dtlb);

	return torsh_cpu_counts_pattern(&counts);
}

static void patterns_are_told_at_their_limits(void **state)
{
	const struct cpu_counts few = with(99999, 0, 0, 0);
	struct cpu_counts lacking = with(1000000, 50, 0, 0);

	(void)state;
	assert_int_equal(pattern_of(999, 99, 0), ACCESS_RESIDENT);
	assert_int_equal(pattern_of(1000, 99, 0), ACCESS_CACHED);
	assert_int_equal(pattern_of(50000, 99, 40000), ACCESS_CACHED);
	/* A page has 64 lines: one miss of the TLB in as many. */
	assert_int_equal(pattern_of(64000, 32000, 1000), ACCESS_STREAMING);
	assert_int_equal(pattern_of(64000, 100, 4000), ACCESS_STREAMING);
	assert_int_equal(pattern_of(64000, 64000, 4001), ACCESS_MIXED);
	assert_int_equal(pattern_of(20000, 20000, 20000), ACCESS_RANDOM);
	assert_int_equal(pattern_of(20000, 20000, 10000), ACCESS_RANDOM);
	assert_int_equal(pattern_of(20000, 20000, 9999), ACCESS_MIXED);
	assert_int_equal(torsh_cpu_counts_pattern(&few), ACCESS_UNKNOWN);
	lacking.has &= ~(1u << CPU_COUNTER_LLC_MISSES);
	assert_int_equal(torsh_cpu_counts_pattern(&lacking), ACCESS_UNKNOWN);
}

static void a_sentence_has_its_numbers(void **state)
{
	const struct cpu_counts streaming = with(1000000, 64000, 32000, 1000),
				unknown = with(10, 1, 1, 1);
	char text[CPU_COUNTERS_TEXT_BYTES];

	(void)state;
	assert_string_equal(
		torsh_cpu_counters_access(&streaming, text),
		"streaming: it reads memory in order, or from huge pages: 64 misses of the first "
		"cache, 32 of the last and 1 of the TLB in 1,000 instructions");
	assert_null(torsh_cpu_counters_access(&unknown, text));
}

static const char *reason(uint32_t has, uint32_t error, uint32_t migrations_error, int paranoid)
{
	static char text[CPU_COUNTERS_TEXT_BYTES];
	const struct process_counts counts = {.is_known = true,
					      .mode = {.has = has,
						       .error = error,
						       .migrations_error = migrations_error,
						       .paranoid = paranoid}};

	return torsh_cpu_counters_reason(&counts, text);
}

static void a_reason_has_the_command_that_helps(void **state)
{
	const uint32_t kernel = ALL & ~HARDWARE, no_llc = ALL & ~(1u << CPU_COUNTER_LLC_MISSES),
		       no_migrations = ALL & ~(1u << CPU_COUNTER_MIGRATIONS);
	char text[CPU_COUNTERS_TEXT_BYTES];

	(void)state;
	assert_null(reason(ALL, 0, 0, 2));
	assert_non_null(strstr(reason(kernel, ENOENT, 0, 2), "qemu -cpu host,pmu=on"));
	assert_non_null(strstr(reason(kernel, EOPNOTSUPP, 0, 2), "no performance monitoring unit"));
	assert_non_null(
		strstr(reason(kernel, EACCES, 0, 4),
		       "perf_event_paranoid is 4: sudo sysctl kernel.perf_event_paranoid=2"));
	assert_non_null(strstr(reason(kernel, EPERM, 0, 2), "docker run --cap-add PERFMON"));
	assert_non_null(strstr(reason(kernel, EPERM, 0, INT32_MIN), "docker run"));
	assert_non_null(strstr(reason(kernel, ENOSYS, 0, 2), "seccomp=unconfined"));
	assert_non_null(strstr(reason(kernel, EMFILE, 0, 2), "ulimit -n"));
	assert_non_null(strstr(reason(kernel, EBUSY, 0, 2), strerror(EBUSY)));
	assert_non_null(strstr(reason(no_llc, ENOENT, 0, 2), "does not count llc_misses"));
	assert_non_null(
		strstr(reason(no_migrations, 0, EACCES, 2),
		       "no migrations: not permitted while kernel.perf_event_paranoid is 2: "
		       "sudo sysctl kernel.perf_event_paranoid=1"));
	assert_non_null(
		strstr(torsh_cpu_counters_reason(&(struct process_counts){0}, text), "perf"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_add_up),
		cmocka_unit_test(a_base_counts_nothing),
		cmocka_unit_test(a_counter_that_one_part_lacks_is_unknown),
		cmocka_unit_test(a_shared_pmu_is_extrapolated_by_its_group),
		cmocka_unit_test(patterns_are_told_at_their_limits),
		cmocka_unit_test(a_sentence_has_its_numbers),
		cmocka_unit_test(a_reason_has_the_command_that_helps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
