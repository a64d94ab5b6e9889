/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What counters of several kernels come to, by numbers worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "tools/device/kernels/kernel_metrics.h"

#define N(array) (sizeof(array) / sizeof(*(array)))

/* One of each field of two kernels, of 300 and 100 ns: what sums, means and maxima have to be. */
static const struct {
	enum kernel_metric metric;
	const char *field, *counter;
	double first, second, expected;
} fields[] = {
	{METRIC_DRAM_READ, "total_dram_bytes_read", "dram__bytes_read.sum", 67120000, 791040,
	 67911040},
	{METRIC_DRAM_WRITTEN, "total_dram_bytes_written", "dram__bytes_write.sum", 4096, 100, 4196},
	{METRIC_MEMORY_THROUGHPUT, "memory_throughput_pct",
	 "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", 40, 80, 50},
	{METRIC_DRAM_THROUGHPUT, "dram_throughput_pct",
	 "dram__throughput.avg.pct_of_peak_sustained_elapsed", 10, 50, 20},
	{METRIC_MEM_BUSY, "mem_busy_pct", "l1tex__throughput.avg.pct_of_peak_sustained_active", 0,
	 100, 25},
	{METRIC_L1_HITS, "l1_hit_rate", "l1tex__t_sector_hit_rate.pct", 90, 50, 80},
	{METRIC_L2_HITS, "l2_hit_rate", "lts__t_sector_hit_rate.pct", 20, 60, 30},
	{METRIC_SM_THROUGHPUT, "sm_throughput_pct",
	 "sm__throughput.avg.pct_of_peak_sustained_elapsed", 30, 70, 40},
	{METRIC_TENSOR_CORES, "tensor_core_active_pct",
	 "smsp__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", 0, 8, 2},
	{METRIC_OCCUPANCY, "achieved_occupancy",
	 "sm__warps_active.avg.pct_of_peak_sustained_active", 57.366, 57.366, 57.366},
	{METRIC_WARP_CYCLES, "warp_cycles_per_instruction",
	 "smsp__average_warp_latency_per_inst_issued.ratio", 4, 12, 6},
	{METRIC_ELIGIBLE, "eligible_cycles_pct",
	 "smsp__issue_active.avg.pct_of_peak_sustained_active", 100, 0, 75},
	{METRIC_EXECUTED, "total_executed_instructions", "smsp__inst_executed.sum", 1000, 2000,
	 3000},
	{METRIC_ISSUED, "total_issued_instructions", "smsp__inst_issued.sum", 1001, 2001, 3002},
	{METRIC_IPC, "ipc_active", "smsp__inst_executed.avg.per_cycle_active", 0.5, 0.9, 0.6},
	{METRIC_THREADS, "avg_threads_per_warp",
	 "smsp__average_thread_inst_executed_per_inst_executed.ratio", 32, 16, 28},
	{METRIC_REGISTERS, "registers_per_thread", "launch__registers_per_thread", 32, 255, 255},
	{METRIC_SPILLS, "local_memory_spills", "l1tex__t_output_wavefronts_pipe_lsu_mem_local.sum",
	 0, 7, 7},
	{METRIC_SHARED, "dynamic_smem_per_block", "launch__shared_mem_per_block_dynamic", 4096,
	 1024, 4096},
};

static void every_field_follows_its_formula(void **state)
{
	struct raw_metric first[N(fields)], second[N(fields)];
	struct kernel_sums sums = {0};

	(void)state;
	assert_int_equal(N(fields), N_KERNEL_METRICS);
	for (size_t i = 0; i < N(fields); i++) {
		first[i] = (struct raw_metric){fields[i].counter, fields[i].first};
		second[i] = (struct raw_metric){fields[i].counter, fields[i].second};
	}
	torsh_metrics_add(&sums, 300, first, N(first));
	torsh_metrics_add(&sums, 100, second, N(second));
	assert_int_equal(sums.total_ns, 400);
	assert_int_equal(sums.n_kernels, 2);
	assert_int_equal(sums.dominant, 0);
	for (size_t i = 0; i < N(fields); i++) {
		double value = NAN;

		assert_string_equal(torsh_metric_fields[fields[i].metric].name, fields[i].field);
		assert_true(torsh_metrics_value(&sums, fields[i].metric, &value));
		assert_float_equal(value, fields[i].expected, 1e-9);
	}
}

static void only_kernels_that_have_a_metric_count_for_it(void **state)
{
	static const struct raw_metric hits = {"l2_hit_rate of nobody", 3},
				       known = {"lts__t_hit_rate.pct", 40};
	struct kernel_sums sums = {0};
	double value;

	(void)state;
	torsh_metrics_add(&sums, 900, &hits, 1);
	torsh_metrics_add(&sums, 100, &known, 1);
	assert_true(torsh_metrics_value(&sums, METRIC_L2_HITS, &value));
	assert_float_equal(value, 40, 0);
	assert_false(torsh_metrics_value(&sums, METRIC_L1_HITS, &value));
	assert_false(torsh_metrics_value(&sums, METRIC_EXECUTED, &value));
}

static void a_mean_over_no_time_is_missing(void **state)
{
	static const struct raw_metric raw[] = {{"lts__t_sector_hit_rate.pct", 40},
						{"smsp__inst_executed.sum", 5}};
	struct kernel_sums sums = {0};
	double value;

	(void)state;
	torsh_metrics_add(&sums, 0, raw, N(raw));
	assert_false(torsh_metrics_value(&sums, METRIC_L2_HITS, &value));
	assert_true(torsh_metrics_value(&sums, METRIC_EXECUTED, &value));
	assert_float_equal(value, 5, 0);
}

static void the_first_of_the_longest_kernels_is_dominant(void **state)
{
	struct kernel_sums sums = {0};

	(void)state;
	torsh_metrics_add(&sums, 5, NULL, 0);
	torsh_metrics_add(&sums, 9, NULL, 0);
	torsh_metrics_add(&sums, 9, NULL, 0);
	assert_int_equal(sums.dominant, 1);
}

static void names_that_exist_are_taken_before_others(void **state)
{
	static const struct raw_metric raw[] = {{"dram__bytes_read.sum", 1},
						{"fbpa__dram_read_bytes.sum", 2}};
	struct kernel_sums sums = {0};
	double value;

	(void)state;
	torsh_metrics_add(&sums, 1, raw, N(raw));
	assert_true(torsh_metrics_value(&sums, METRIC_DRAM_READ, &value));
	assert_float_equal(value, 2, 0);
	assert_int_equal(torsh_metric_of("L2 Hit Rate"), METRIC_L2_HITS);
	assert_int_equal(torsh_metric_of("no counter"), N_KERNEL_METRICS);
}

static void a_value_that_is_no_number_is_left_out(void **state)
{
	const struct raw_metric raw[] = {{"launch__registers_per_thread", NAN},
					 {"lts__t_sector_hit_rate.pct", INFINITY}};
	struct kernel_sums sums = {0};
	double value;

	(void)state;
	torsh_metrics_add(&sums, 10, raw, N(raw));
	assert_false(torsh_metrics_value(&sums, METRIC_REGISTERS, &value));
	assert_false(torsh_metrics_value(&sums, METRIC_L2_HITS, &value));
}

/* A device of 1000 GFLOP/s and 100 GB/s: its ridge is at 10 FLOP a byte. */
static void rooflines_are_bound_by_memory_below_the_ridge(void **state)
{
	struct roofline roofline;

	(void)state;
	assert_true(torsh_roofline_of(4000, 1000, 20, 1000, 100, &roofline));
	assert_float_equal(roofline.intensity, 4, 0);
	assert_false(roofline.is_compute_bound);
	assert_float_equal(roofline.ceiling_gflops, 400, 1e-9);
	assert_float_equal(roofline.efficiency_pct, 50, 1e-9);
	assert_true(torsh_roofline_of(10000, 1000, 40, 1000, 100, &roofline));
	assert_true(roofline.is_compute_bound);
	assert_float_equal(roofline.ceiling_gflops, 1000, 0);
	assert_float_equal(roofline.efficiency_pct, 25, 1e-9);
	assert_true(torsh_roofline_of(1e9, 1, 1, 1000, 100, &roofline));
	assert_float_equal(roofline.efficiency_pct, 100, 0);
	assert_false(torsh_roofline_of(1000, 0, 1, 1000, 100, &roofline));
	assert_false(torsh_roofline_of(1000, 10, 1, 0, 100, &roofline));
	assert_false(torsh_roofline_of(1000, 10, 0, 1000, 100, &roofline));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field_follows_its_formula),
		cmocka_unit_test(only_kernels_that_have_a_metric_count_for_it),
		cmocka_unit_test(a_mean_over_no_time_is_missing),
		cmocka_unit_test(the_first_of_the_longest_kernels_is_dominant),
		cmocka_unit_test(names_that_exist_are_taken_before_others),
		cmocka_unit_test(a_value_that_is_no_number_is_left_out),
		cmocka_unit_test(rooflines_are_bound_by_memory_below_the_ridge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
