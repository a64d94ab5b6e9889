/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* To what the nodes of CUDA graphs belong, and what a window of calls remembers. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>

#include "tools/timeline/call_window.h"
#include "tools/timeline/device/graph_nodes.h"

static void see(struct graph_nodes *nodes, uint64_t node, uint64_t original, uint32_t capture)
{
	const struct event_graph_node event = {.node = node, .original = original};

	torsh_graph_nodes_see(nodes, &event, capture);
}

static void a_node_belongs_to_what_captured_it(void **state)
{
	struct graph_nodes nodes;

	(void)state;
	torsh_graph_nodes_create(&nodes);
	see(&nodes, 1, 0, 7);
	see(&nodes, 2, 0, 0);
	assert_int_equal(torsh_graph_nodes_find(&nodes, 1), 7);
	assert_int_equal(torsh_graph_nodes_find(&nodes, 2), 0);
	assert_int_equal(torsh_graph_nodes_find(&nodes, 3), 0);
	assert_int_equal(torsh_graph_nodes_find(&nodes, 0), 0);
	torsh_graph_nodes_destroy(&nodes);
}

static void a_clone_belongs_where_its_original_does(void **state)
{
	struct graph_nodes nodes;

	(void)state;
	torsh_graph_nodes_create(&nodes);
	see(&nodes, 1, 0, 7);
	see(&nodes, 2, 1, 9);
	see(&nodes, 3, 2, 0);
	assert_int_equal(torsh_graph_nodes_find(&nodes, 2), 7);
	assert_int_equal(torsh_graph_nodes_find(&nodes, 3), 7);
	see(&nodes, 4, 99, 9);
	assert_int_equal(torsh_graph_nodes_find(&nodes, 4), 0);
	torsh_graph_nodes_destroy(&nodes);
}

static void an_instantiation_creates_nodes_in_nobodys_name(void **state)
{
	struct graph_nodes nodes;

	(void)state;
	torsh_graph_nodes_create(&nodes);
	see(&nodes, 1, 0, 7);
	/* In either order. */
	see(&nodes, 2, 0, 9);
	see(&nodes, 2, 1, 9);
	see(&nodes, 3, 1, 9);
	see(&nodes, 3, 0, 9);
	assert_int_equal(torsh_graph_nodes_find(&nodes, 2), 7);
	assert_int_equal(torsh_graph_nodes_find(&nodes, 3), 7);
	torsh_graph_nodes_destroy(&nodes);
}

static void a_window_remembers_the_latest_calls(void **state)
{
	struct call_window window;
	uint32_t number;

	(void)state;
	torsh_call_window_create(&window);
	assert_false(torsh_call_window_find(&window, 5, &number));
	for (uint32_t i = 0; i < WINDOW_CALLS + 100; i++)
		torsh_call_window_add(&window, i, i + 1);
	assert_false(torsh_call_window_find(&window, 0, &number));
	assert_false(torsh_call_window_find(&window, 99, &number));
	for (uint32_t i = 100; i < WINDOW_CALLS + 100; i++) {
		assert_true(torsh_call_window_find(&window, i, &number));
		assert_int_equal(number, i + 1);
	}
	torsh_call_window_destroy(&window);
}

static void of_two_calls_with_one_number_the_first_reported_counts(void **state)
{
	struct call_window window;
	uint32_t number;

	(void)state;
	torsh_call_window_create(&window);
	torsh_call_window_add(&window, 8, 1);
	torsh_call_window_add(&window, 8, 2);
	assert_true(torsh_call_window_find(&window, 8, &number));
	assert_int_equal(number, 1);
	torsh_call_window_destroy(&window);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_belongs_to_what_captured_it),
		cmocka_unit_test(a_clone_belongs_where_its_original_does),
		cmocka_unit_test(an_instantiation_creates_nodes_in_nobodys_name),
		cmocka_unit_test(a_window_remembers_the_latest_calls),
		cmocka_unit_test(of_two_calls_with_one_number_the_first_reported_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
