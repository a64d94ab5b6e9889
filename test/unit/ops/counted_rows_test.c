/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Counts of the CPU belong to the operator, the module and the step around them, on small fixed
 * timelines.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test/unit/fixtures/operators_fixture.h"
#include "tools/ops/module_totals.h"
#include "tools/ops/step_totals.h"

/* So much since the last time, in processor time and in cycles. */
static void put_counts(uint64_t at_ns, uint32_t thread, uint64_t n)
{
	struct event event = {.id = EVENT_CPU_COUNTS};

	event.cpu_counts.has = (1u << N_CPU_COUNTERS) - 1;
	event.cpu_counts.task_clock_ns = n;
	fixture_event(&fixture, at_ns, thread, &event);
	event = (struct event){.id = EVENT_CPU_HARDWARE_COUNTS};
	event.cpu_hardware_counts.cycles = 10 * n;
	fixture_event(&fixture, at_ns, thread, &event);
}

static void check(const struct cpu_counts *counts, uint64_t n)
{
	assert_int_equal(counts->counts[CPU_COUNTER_TASK_CLOCK], n);
	assert_int_equal(counts->counts[CPU_COUNTER_CYCLES], 10 * n);
}

/* A step: an operator in an operator in a module in a module, and another thread. */
static void put_counted(uint64_t at, uint32_t record, uint64_t n)
{
	put_counts(at, 0, 1000 * n);
	fixture_push(&fixture, at, 0, "net:Net", NULL, RANGE_BY_MODULE);
	put_counts(at + 5, 0, 1 * n);
	fixture_push(&fixture, at + 5, 0, "net.fc:Linear", NULL, RANGE_BY_MODULE);
	put_counts(at + 10, 0, 2 * n);
	fixture_op(&fixture, at + 10, 0, record, "aten::linear", NULL, 0, NONE);
	put_counts(at + 20, 0, 4 * n);
	fixture_op(&fixture, at + 20, 0, record + 1, "aten::addmm", NULL, 0, NONE);
	put_counts(at + 25, 1, 512 * n);
	put_counts(at + 30, 0, 8 * n);
	fixture_op_end(&fixture, at + 30, 0, record + 1);
	put_counts(at + 40, 0, 16 * n);
	fixture_op_end(&fixture, at + 40, 0, record);
	put_counts(at + 45, 0, 32 * n);
	fixture_pop(&fixture, at + 45, 0, NULL, RANGE_BY_MODULE);
	put_counts(at + 50, 0, 64 * n);
	fixture_pop(&fixture, at + 50, 0, NULL, RANGE_BY_MODULE);
	put_counts(at + 60, 0, 128 * n);
	fixture_op(&fixture, at + 60, 0, record + 2, "Optimizer.step#SGD.step", NULL, OP_USER,
		   NONE);
	put_counts(at + 70, 0, 256 * n);
	fixture_op_end(&fixture, at + 70, 0, record + 2);
}

static void an_operator_has_its_own_and_those_inside(void **state)
{
	(void)state;
	put_counted(1000, 1, 1);
	put_counted(2000, 11, 3);
	collect(OPERATORS_BY_NAME, 0);
	check(&find("aten::addmm")->counts, 4 * 8);
	check(&find("aten::addmm")->self_counts, 4 * 8);
	check(&find("aten::linear")->self_counts, 4 * (4 + 16));
	/* What was counted where it began is not its. */
	assert_int_equal(find("aten::linear")->counts.counts[CPU_COUNTER_TASK_CLOCK],
			 4 * (4 + 8 + 16));
	check(&find("aten::linear")->counts, 4 * (4 + 8 + 16));
	check(&find("Optimizer.step#SGD.step")->counts, 4 * 256);
}

static void a_module_has_its_own_and_those_inside(void **state)
{
	struct module_totals totals;
	int n_seen = 0;

	(void)state;
	put_counted(1000, 1, 1);
	collect(OPERATORS_BY_NAME, 0);
	torsh_module_totals_collect(&totals, recording, recording->processes,
				    recording->n_processes, &prepass);
	for (size_t i = 0; i < totals.n; i++) {
		const struct module_total *total = &totals.items[i];

		n_seen++;
		if (strcmp(total->name, "net:Net") == 0) {
			check(&total->counts, 1 + 64);
			check(&total->whole_counts, 1 + 2 + 4 + 8 + 16 + 32 + 64);
		} else if (strcmp(total->name, "net.fc:Linear") == 0) {
			check(&total->counts, 2 + 4 + 8 + 16 + 32);
			check(&total->whole_counts, 2 + 4 + 8 + 16 + 32);
		} else {
			/* Outside of modules only what operators did. */
			assert_string_equal(total->name, "");
			check(&total->counts, 256);
		}
	}
	assert_int_equal(n_seen, 3);
	torsh_module_totals_free(&totals);
}

static void a_step_has_those_of_all_threads(void **state)
{
	struct step_totals totals;

	(void)state;
	put_counted(1000, 1, 1);
	put_counted(2000, 11, 3);
	collect(OPERATORS_BY_NAME, 0);
	torsh_step_totals_collect(&totals, recording, recording->processes[0], &prepass);
	assert_int_equal(prepass.items[0].steps.n, 2);
	/* The first begins with its first module, the second where the first ends. */
	check(&totals.items[0].counts, 1 + 2 + 4 + 8 + 16 + 32 + 64 + 128 + 256 + 512);
	check(&totals.items[1].counts, 3 * (1000 + 1 + 2 + 4 + 8 + 16 + 32 + 64 + 128 + 256 + 512));
	torsh_step_totals_free(&totals);
}

static void a_thread_has_all_of_its_own(void **state)
{
	const struct sparse_array *threads;

	(void)state;
	put_counted(1000, 1, 1);
	collect(OPERATORS_BY_NAME, 0);
	threads = &prepass.items[0].counts.threads;
	check(torsh_sparse_array_find(threads, 0), 1000 + 1 + 2 + 4 + 8 + 16 + 32 + 64 + 128 + 256);
	check(torsh_sparse_array_find(threads, 1), 512);
	assert_false(prepass.items[0].counts.is_known);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_A_TIMELINE(an_operator_has_its_own_and_those_inside),
		ON_A_TIMELINE(a_module_has_its_own_and_those_inside),
		ON_A_TIMELINE(a_step_has_those_of_all_threads),
		ON_A_TIMELINE(a_thread_has_all_of_its_own),
	};

	return cmocka_run_group_tests(tests, make_path, remove_path);
}
