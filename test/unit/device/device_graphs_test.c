/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Memory of CUDA graphs: what a launch is worth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/device/memory/device_graphs.h"

enum { LAUNCHED_AT = 500, A = 0x1000, B = 0x2000, EXECUTABLE = 0x77 };

static struct device_blocks blocks;
static struct device_graphs graphs;
static uint64_t peak_bytes;

static uint64_t live_bytes(void)
{
	return blocks.n_scopes ? blocks.scopes[0].bytes : 0;
}

static void visit(void *context, const struct event *event, const struct device_origin *origin)
{
	(void)context;
	torsh_device_blocks_take(&blocks, event, origin);
	if (live_bytes() > peak_bytes)
		peak_bytes = live_bytes();
}

static void emit(const struct event *event, uint64_t at_ns)
{
	const struct device_origin origin = {.at_ns = at_ns, .thread = 1, .stack = (uint32_t)at_ns};

	visit(NULL, event, &origin);
	torsh_device_graphs_take(&graphs, &blocks, event, &origin, visit, NULL);
}

static void node(uint32_t graph, uint64_t address, uint64_t bytes)
{
	emit(&(struct event){.id = EVENT_GRAPH_MEMORY,
			     .graph_memory = {.graph = graph,
					      .is_free = !bytes,
					      .address = address,
					      .bytes = bytes}},
	     graph);
}

static void instantiate(uint32_t graph, uint32_t flags)
{
	emit(&(struct event){.id = EVENT_GRAPH_EXECUTABLE,
			     .graph_executable = {.executable = EXECUTABLE,
						  .graph = graph,
						  .flags = flags}},
	     100);
}

static void launch(void)
{
	emit(&(struct event){.id = EVENT_GRAPH_LAUNCH, .graph_launch = {.executable = EXECUTABLE}},
	     LAUNCHED_AT);
}

static void emit_free(uint64_t address)
{
	emit(&(struct event){.id = EVENT_DEVICE_FREE,
			     .device_free = {.kind = BLOCK_DEVICE, .address = address}},
	     600);
}

static int begin(void **state)
{
	(void)state;
	torsh_device_blocks_create(&blocks);
	torsh_device_graphs_create(&graphs);
	peak_bytes = 0;
	return 0;
}

static int end(void **state)
{
	(void)state;
	torsh_device_blocks_destroy(&blocks);
	torsh_device_graphs_destroy(&graphs);
	return 0;
}

static void nothing_is_alive_before_a_launch(void **state)
{
	(void)state;
	node(1, A, 100);
	instantiate(1, 0);
	assert_int_equal(live_bytes(), 0);
	launch();
	assert_int_equal(live_bytes(), 100);
}

static void a_launch_does_what_its_nodes_do_in_their_order(void **state)
{
	(void)state;
	node(1, A, 100);
	node(1, B, 30);
	node(1, A, 0);
	instantiate(1, 0);
	launch();
	assert_int_equal(live_bytes(), 30);
	assert_int_equal(peak_bytes, 130);
	assert_int_equal(blocks.scopes[0].allocs, 2);
	assert_int_equal(blocks.scopes[0].frees, 1);
}

static void what_a_launch_gets_has_its_nodes_stack_and_the_launchs_time(void **state)
{
	const struct device_block *block;

	(void)state;
	node(3, A, 100);
	instantiate(3, 0);
	launch();
	block = torsh_device_blocks_at(&blocks, A);
	assert_non_null(block);
	assert_int_equal(block->origin.stack, 3);
	assert_int_equal(block->origin.at_ns, LAUNCHED_AT);
}

static void the_next_launch_frees_where_requested(void **state)
{
	(void)state;
	node(1, A, 100);
	node(1, B, 30);
	instantiate(1, GRAPH_FREES_AT_LAUNCH);
	launch();
	emit_free(B);
	launch();
	assert_int_equal(live_bytes(), 130);
	assert_int_equal(blocks.scopes[0].frees, 2);
	assert_int_equal(blocks.implicit_frees, 0);
}

static void one_graph_frees_what_another_one_got(void **state)
{
	(void)state;
	node(1, A, 100);
	instantiate(1, 0);
	launch();
	node(2, A, 0);
	instantiate(2, 0);
	assert_int_equal(live_bytes(), 100);
	launch();
	assert_int_equal(live_bytes(), 0);
}

static void an_executable_graph_is_what_its_graph_was(void **state)
{
	(void)state;
	node(1, A, 100);
	instantiate(1, 0);
	node(1, B, 30);
	launch();
	assert_int_equal(live_bytes(), 100);
}

static void a_handle_may_become_another_graphs(void **state)
{
	(void)state;
	node(1, A, 100);
	instantiate(1, 0);
	instantiate(2, 0); /* without memory */
	launch();
	assert_int_equal(live_bytes(), 0);
}

static void a_free_that_is_captured_frees_nothing(void **state)
{
	(void)state;
	node(1, A, 100);
	instantiate(1, 0);
	launch();
	emit_free(A);
	emit(
		&(struct event){
			.id = EVENT_GRAPH_MEMORY,
			.graph_memory = {.graph = 2, .is_free = 1, .is_told = 1, .address = A}},
		700);
	assert_int_equal(live_bytes(), 100);
	assert_int_equal(blocks.failed_frees, 0);
	assert_int_equal(blocks.scopes[0].frees, 0);
}

static void a_launch_of_an_unknown_graph_is_ignored(void **state)
{
	(void)state;
	launch();
	instantiate(9, 0);
	launch();
	assert_int_equal(live_bytes(), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_alive_before_a_launch),
		TEST(a_launch_does_what_its_nodes_do_in_their_order),
		TEST(what_a_launch_gets_has_its_nodes_stack_and_the_launchs_time),
		TEST(the_next_launch_frees_where_requested),
		TEST(one_graph_frees_what_another_one_got),
		TEST(an_executable_graph_is_what_its_graph_was),
		TEST(a_handle_may_become_another_graphs),
		TEST(a_free_that_is_captured_frees_nothing),
		TEST(a_launch_of_an_unknown_graph_is_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
