/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The parts of torsh whatif on traces and shapes made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tools/memory/whatif/batch_scale.h"
#include "tools/memory/whatif/recompute.h"
#include "tools/memory/whatif/replay.h"
#include "tools/memory/whatif/result_shape.h"

#define MIB (UINT64_C(1) << 20)
#define BATCH 4

/* ---- traces ---------------------------------------------------------------------------------- */

static struct memory_trace trace;

static void add(uint64_t at_ns, enum trace_kind kind, uint32_t block)
{
	torsh_memory_trace_add(
		&trace, &(struct trace_change){.at_ns = at_ns, .kind = kind, .block = block});
}

/* An allocation in the operator of that number. Returns the block. */
static uint32_t alloc(uint64_t at_ns, uint64_t bytes, uint64_t call)
{
	struct trace_block block = {
		.bytes = bytes, .recorded_bytes = bytes, .call = call, .at_ns = at_ns};
	uint32_t number = torsh_memory_trace_add_block(&trace, &block);

	add(at_ns, TRACE_ALLOC, number);
	return number;
}

static int clear(void **state)
{
	(void)state;
	free(trace.changes);
	free(trace.blocks);
	trace = (struct memory_trace){0};
	return 0;
}

static struct replay replay(uint64_t capacity_bytes)
{
	struct allocator_settings settings;

	torsh_allocator_settings_default(&settings);
	return torsh_replay(&trace, &settings, capacity_bytes);
}

static void peaks_and_the_failing_block_are_those_of_the_trace(void **state)
{
	struct replay result;

	(void)state;
	alloc(1, 30 * MIB, 0);
	add(2, TRACE_FREE, alloc(1, 50 * MIB, 0));
	add(3, TRACE_RELEASE, 0);
	alloc(4, 60 * MIB, 0);
	result = replay(0);
	assert_int_equal(result.peak.reserved, 90 * MIB);
	assert_int_equal(result.peak.allocated, 90 * MIB);
	assert_false(result.is_out_of_memory);
	result = replay(84 * MIB);
	assert_true(result.is_out_of_memory);
	assert_int_equal(result.failed_block, 2);
	assert_int_equal(result.missing_bytes, 6 * MIB);
	assert_int_equal(result.at_failure.reserved, 30 * MIB);
	assert_true(torsh_replay_difference(&result,
					    &(struct tensor_sums){.allocated = 80 * MIB,
								  .reserved = 160 * MIB}) == 0.5);
}

static void sizes_that_give_another_block_are_corrected(void **state)
{
	struct allocator_settings settings;

	(void)state;
	torsh_allocator_settings_default(&settings);
	alloc(1, 12 * MIB, 0);
	alloc(2, 12 * MIB, 0);
	trace.blocks[0].bytes = 11 * MIB + 1; /* can be the requested size: it is not split */
	trace.blocks[1].bytes = 10 * MIB; /* would be split */
	torsh_replay_fit(&trace, &settings);
	assert_int_equal(trace.blocks[0].bytes, 11 * MIB + 1);
	assert_int_equal(trace.blocks[1].bytes, 12 * MIB);
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

/*
 * A call from 10 to 20 with a temporary of 8 MiB, activations of 16 and 32 MiB and a result of
 * 4 MiB beside a mask of 2, of one operator; its backward pass from 50 on.
 */
static void add_training_step(void)
{
	uint32_t temporary, first, second, result, mask, later;

	temporary = alloc(11, 8 * MIB, 1);
	first = alloc(12, 16 * MIB, 2);
	add(13, TRACE_FREE, temporary);
	second = alloc(14, 32 * MIB, 3);
	result = alloc(15, 4 * MIB, 4);
	mask = alloc(16, 2 * MIB, 4);
	later = alloc(30, 64 * MIB, 5);
	add(40, TRACE_FREE, later);
	add(60, TRACE_FREE, second);
	add(61, TRACE_FREE, mask);
	add(62, TRACE_FREE, first);
	add(63, TRACE_FREE, result);
}

static void what_a_module_keeps_is_freed_and_computed_again(void **state)
{
	struct module_call call = {.start_ns = 10, .end_ns = 20, .backward_ns = 50};
	struct module_calls calls = {.items = &call, .n = 1};
	struct assumptions assumptions = {0};

	(void)state;
	add_training_step();
	assert_int_equal(replay(0).peak.allocated, (16 + 32 + 4 + 2 + 64) * MIB);
	torsh_recompute(&trace, &calls, &assumptions);
	/* Only the result is there beside the later block. */
	assert_int_equal(replay(0).peak.allocated, (4 + 64) * MIB);
	assert_int_equal(trace.n_blocks, 11);
	assert_non_null(strstr(assumptions.items[0], "3 blocks with 50.0 MiB in all"));
	torsh_assumptions_free(&assumptions);
}

static void calls_without_a_backward_pass_stay(void **state)
{
	struct module_call call = {.start_ns = 10, .end_ns = 20};
	struct module_calls calls = {.items = &call, .n = 1};
	struct assumptions assumptions = {0};

	(void)state;
	add_training_step();
	torsh_recompute(&trace, &calls, &assumptions);
	assert_int_equal(replay(0).peak.allocated, (16 + 32 + 4 + 2 + 64) * MIB);
	assert_non_null(strstr(assumptions.items[2], "1 call without a backward pass"));
	torsh_assumptions_free(&assumptions);
}

static void modules_are_meant_by_class_path_or_label(void **state)
{
	static const char *const meant[] = {"Block", "layers.0", "Net.layers.0",
					    "Net.layers.0:Block"},
				 *const others[] = {"", "Net", "layers", "0", "Bloc", "ayers.0"};

	(void)state;
	for (size_t i = 0; i < sizeof(meant) / sizeof(*meant); i++)
		assert_true(torsh_module_is("Net.layers.0:Block", meant[i]));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_false(torsh_module_is("Net.layers.0:Block", others[i]));
	assert_true(torsh_module_is("Net:Net", "Net"));
}

/* ---- the batch ------------------------------------------------------------------------------- */

static void begin_batch(struct batch *batch)
{
	*batch = (struct batch){.size = BATCH};
	torsh_key_index_create(&batch->parameters);
	torsh_key_index_create(&batch->parameter_elements);
	torsh_key_index_create(&batch->parameter_dims);
	torsh_key_index_create(&batch->other_dims);
	torsh_key_index_create(&batch->lengths);
}

static void what_has_the_batch_is_multiplied(void **state)
{
	struct assumptions assumptions = {0};
	struct batch batch;

	(void)state;
	begin_batch(&batch);
	trace.n_threads = 132 * 2048;
	for (uint32_t part = 0; part < N_SIZE_PARTS; part++) {
		uint32_t block = alloc(part, 16 * MIB, 0);

		trace.blocks[block].part = part;
	}
	torsh_batch_scale(&trace, &batch, 3, &assumptions);
	assert_int_equal(replay(0).peak.allocated, (3 + 3 + 1 + 1) * 16 * MIB);
	assert_int_equal(assumptions.n, 1 + N_SIZE_PARTS);
	assert_non_null(strstr(assumptions.items[0], "The batch is 4,"));
	assert_non_null(strstr(assumptions.items[0], "it becomes 12."));
	assert_non_null(strstr(assumptions.items[1], "1 block with 16.0 MiB"));
	torsh_assumptions_free(&assumptions);
	assumptions = (struct assumptions){0};
	batch.size = 0;
	torsh_batch_scale(&trace, &batch, 2, &assumptions);
	assert_int_equal(replay(0).peak.allocated, (3 + 3 + 1 + 1) * 16 * MIB);
	torsh_assumptions_free(&assumptions);
	torsh_batch_free(&batch);
}

static void shapes_of_results_are_known(void **state)
{
	/* elements 0: nothing is known */
	static const struct {
		const char *operator_name, *inputs;
		uint64_t elements;
		bool has_batch;
	} results[] = {
		{"aten::addmm", "float32[7];float32[4,5];float32[5,7](1,5);1;1", 28, true},
		/* a gradient of a weight: the batch is summed up */
		{"aten::mm", "float32[5,4](1,5);float32[4,7]", 35, false},
		{"aten::bmm", "float32[8,3,5];float32[8,5,2]", 48, true},
		{"aten::empty_strided", "{4,3};{3,1};6;0;_;false", 12, true},
		{"aten::empty", "{3,3};6;0;_;false;-", 9, false},
		{"aten::sum", "float32[4,6];{0};true;-", 6, false},
		{"aten::sum", "float32[4,6];{-1};true;-", 4, true},
		{"aten::embedding", "float32[10,3];int64[4,5];-1;false;false", 60, true},
		{"aten::index_select", "float32[10,3];0;int64[4]", 12, true},
		{"aten::cat", "{float32[4,2],float32[4,3]};1", 20, true},
		{"aten::cat", "{float32[4,2],-};1", 0, false},
		{"aten::sum", "float32[4,6];{9};true;-", 0, false},
		{"aten::mm", "float32[4,6]", 0, false},
		{"aten::relu", "float32[4,6]", 0, false},
	};
	struct batch batch;

	(void)state;
	begin_batch(&batch);
	for (size_t i = 0; i < sizeof(results) / sizeof(*results); i++) {
		struct result_shape shape;
		static struct inputs inputs;
		bool is_known;

		torsh_inputs_parse(&inputs, results[i].inputs);
		is_known = torsh_result_shape(&shape, &batch, results[i].operator_name, &inputs);
		assert_int_equal(is_known, results[i].elements > 0);
		if (!is_known)
			continue;
		assert_int_equal(torsh_shape_elements(&shape.shape), results[i].elements);
		assert_int_equal(shape.has_batch, results[i].has_batch);
	}
	torsh_batch_free(&batch);
}

/*
 * What PyTorch 2.15.0+cu132 requested on a simulated device with 132 multiprocessors of 2048
 * threads, without its counters of blocks.
 */
static void sums_over_many_rows_need_memory_for_parts(void **state)
{
	static const struct {
		const char *inputs;
		uint64_t bytes;
		bool has_batch;
	} sums[] = {
		{"float32[1024,2000];{0};true;-", 16384000, true},
		{"float32[2048,2000];{0};true;-", 32768000, true},
		{"bfloat16[1200,8000];{0};true;-", 77824000, true},
		{"bfloat16[2400,8000];{0};true;-", 139264000, true},
		{"float32[1400,5000];{0};true;-", 56320000, true},
		{"float32[700,5000];{0};true;-", 0, true},
		{"float32[1022,8000];{0};true;-", 65536000, false},
		{"float32[1030,4001];{0};true;-", 0, false},
		{"float32[5000,30];{0};true;-", 0, true},
		{"float32[100000,64];{0};true;-", 12812288, true},
		{"float16[100000,8];{0};true;-", 25088, true},
	};
	struct batch batch;

	(void)state;
	begin_batch(&batch);
	for (size_t i = 0; i < sizeof(sums) / sizeof(*sums); i++) {
		static struct inputs inputs;
		struct reduction reduction;

		torsh_inputs_parse(&inputs, sums[i].inputs);
		reduction = torsh_reduction_of(&batch, "aten::sum", &inputs);
		assert_int_equal(torsh_reduction_bytes(&reduction, 132 * 2048), sums[i].bytes);
		assert_int_equal(reduction.has_batch, sums[i].has_batch);
		reduction = torsh_reduction_of(&batch, "aten::prod", &inputs);
		assert_int_equal(reduction.rows, 0);
	}
	torsh_batch_free(&batch);
}

static void a_sum_that_gets_enough_rows_gets_its_parts(void **state)
{
	struct assumptions assumptions = {0};
	struct batch batch;
	uint32_t block;

	(void)state;
	begin_batch(&batch);
	block = alloc(1, 20000, 1);
	trace.n_threads = 132 * 2048;
	trace.blocks[block].reduction =
		(struct reduction){.rows = 700, .columns = 5000, .has_batch = true};
	trace.blocks[block].part = SIZE_FIXED;
	torsh_batch_scale(&trace, &batch, 2, &assumptions);
	assert_int_equal(trace.n_changes, 3);
	assert_int_equal(trace.blocks[block].bytes, 20000);
	assert_int_equal(trace.blocks[trace.changes[1].block].bytes, 56320000);
	assert_int_equal(trace.changes[2].kind, TRACE_FREE);
	assert_non_null(strstr(assumptions.items[assumptions.n - 1], "1 sum over the batch"));
	torsh_assumptions_free(&assumptions);
	torsh_batch_free(&batch);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(peaks_and_the_failing_block_are_those_of_the_trace,
					  clear),
		cmocka_unit_test_teardown(sizes_that_give_another_block_are_corrected, clear),
		cmocka_unit_test_teardown(what_a_module_keeps_is_freed_and_computed_again, clear),
		cmocka_unit_test_teardown(calls_without_a_backward_pass_stay, clear),
		cmocka_unit_test(modules_are_meant_by_class_path_or_label),
		cmocka_unit_test_teardown(what_has_the_batch_is_multiplied, clear),
		cmocka_unit_test(shapes_of_results_are_known),
		cmocka_unit_test(sums_over_many_rows_need_memory_for_parts),
		cmocka_unit_test_teardown(a_sum_that_gets_enough_rows_gets_its_parts, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
