/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Graphs and captures of the simulated device. */
#include "test/simcuda/engine/memory/graph_memory.h"
#include "test/unit/fixtures/simcuda_fixture.h"

static struct sim_graph_node *add(struct sim_graph *graph, const char *name,
				  struct sim_graph_node *after)
{
	struct sim_work work = kernel(name);

	return sim_graph_add(graph, &work, &after, after ? 1 : 0);
}

/* How long a launch takes, from the start of its first node to its end. */
static uint64_t launch(struct sim_exec *exec, struct sim_stream *stream)
{
	assert_int_equal(sim_exec_launch(exec, stream), 0);
	sim_stream_synchronize(stream);
	return exec->last->end_ns - exec->last->graph_start_ns;
}

static void nodes_run_when_what_they_depend_on_has_ended(void **state)
{
	struct sim_graph *graph = sim_graph_create();
	struct sim_graph_node *root = add(graph, "a", NULL), *left = add(graph, "slow", root),
			      *right = add(graph, "a", root);
	struct sim_exec *exec;

	(void)state;
	add(graph, "a", left);
	add(graph, "a", right);
	assert_int_equal(sim_exec_create(graph, &exec), 0);
	/* The root, the slow one, and what comes after it. */
	assert_int_equal(launch(exec, make_stream(1)), 1000 + 5000 + 1000);
	sim_exec_destroy(exec);
	sim_graph_destroy(graph);
}

static void clones_have_ids_of_their_own_and_refer_to_their_originals(void **state)
{
	struct sim_graph *graph = sim_graph_create(), *clone;
	struct sim_graph_node *first = add(graph, "a", NULL), *second = add(graph, "b", first);

	(void)state;
	clone = sim_graph_clone(graph);
	assert_int_equal(clone->n_nodes, 2);
	assert_ptr_equal(clone->nodes[1]->original, second);
	assert_int_not_equal(clone->nodes[1]->id, second->id);
	assert_ptr_equal(clone->nodes[1]->after[0], clone->nodes[0]);
}

static void a_circle_can_not_be_instantiated(void **state)
{
	struct sim_graph *graph = sim_graph_create();
	struct sim_graph_node *first = add(graph, "a", NULL), *second = add(graph, "b", first);
	struct sim_exec *exec;

	(void)state;
	sim_graph_depend(first, &second, 1);
	assert_int_equal(sim_exec_create(graph, &exec), SIM_INVALID_VALUE);
}

static void launches_of_one_graph_do_not_overlap(void **state)
{
	struct sim_graph *graph = sim_graph_create();
	struct sim_exec *exec;
	uint64_t first_end;

	(void)state;
	add(graph, "a", NULL);
	sim_exec_create(graph, &exec);
	sim_exec_launch(exec, make_stream(1));
	struct sim_op *first = exec->last;
	sim_op_ref(first);
	sim_exec_launch(exec, make_stream(1));
	sim_context_synchronize(context);
	first_end = first->end_ns;
	assert_true(exec->last->graph_start_ns >= first_end);
}

static void a_graph_within_a_graph_runs_as_one_node(void **state)
{
	struct sim_graph *inner = sim_graph_create(), *outer = sim_graph_create();
	struct sim_graph_node *first, *child;
	struct sim_exec *exec;
	struct sim_work work = {.kind = SIM_CHILD};

	(void)state;
	add(inner, "a", add(inner, "a", NULL));
	first = add(outer, "a", NULL);
	work.child = sim_graph_clone(inner);
	child = sim_graph_add(outer, &work, &first, 1);
	add(outer, "a", child);
	sim_exec_create(outer, &exec);
	assert_int_equal(launch(exec, make_stream(1)), 4 * KERNEL_NS);
}

/*
 * Duration of a graph with a single node that runs this one, of a kernel, on a condition of that
 * value.
 */
static uint64_t launch_on_condition(enum sim_condition_kind kind, unsigned value)
{
	struct sim_graph *body = sim_graph_create(), *outer = sim_graph_create();
	struct sim_work work = {
		.kind = SIM_CONDITIONAL,
		.condition = {.kind = kind, .value = value, .n_bodies = 1, .bodies = &body}};
	struct sim_exec *exec;

	add(body, "a", NULL);
	sim_graph_add(outer, &work, NULL, 0);
	sim_exec_create(outer, &exec);
	sim_exec_launch(exec, make_stream(1));
	sim_context_synchronize(context);
	return exec->last->graph_start_ns ? exec->last->end_ns - exec->last->graph_start_ns : 0;
}

static void a_body_runs_as_often_as_its_condition_demands(void **state)
{
	(void)state;
	assert_int_equal(launch_on_condition(SIM_IF, 1), KERNEL_NS);
	assert_int_equal(launch_on_condition(SIM_IF, 0), 0);
	assert_int_equal(launch_on_condition(SIM_WHILE, 0), 0);
	/* By SIMCUDA_LOOP_ROUNDS; between rounds nodes are launched as ever. */
	assert_true(launch_on_condition(SIM_WHILE, 1) >= 3 * KERNEL_NS);
	assert_int_equal(launch_on_condition(SIM_SWITCH, 0), KERNEL_NS);
	assert_int_equal(launch_on_condition(SIM_SWITCH, 1), 0);
}

static uint64_t graph_bytes_used(void)
{
	return context->device->graph_pool->used_bytes;
}

static void memory_of_a_graph_is_alive_from_a_launch_to_its_free(void **state)
{
	struct sim_graph *graph = sim_graph_create();
	struct sim_stream *stream = make_stream(1);
	struct sim_work work = {.kind = SIM_ALLOC};
	struct sim_exec *exec;

	(void)state;
	assert_int_equal(
		sim_graph_memory_reserve(context->device, context->id, graph, 1024, &work.address),
		0);
	sim_graph_add(graph, &work, NULL, 0);
	assert_int_equal(sim_exec_create(graph, &exec), 0);
	assert_int_equal(graph_bytes_used(), 0);
	assert_int_equal(sim_exec_launch(exec, stream), 0);
	assert_int_equal(graph_bytes_used(), 1024);
	assert_int_equal(sim_exec_launch(exec, stream), SIM_INVALID_VALUE);
	assert_int_equal(sim_pool_free(work.address, stream), 0);
	assert_int_equal(sim_pool_free(work.address, stream), SIM_INVALID_VALUE);
	exec->frees_at_launch = true;
	assert_int_equal(sim_exec_launch(exec, stream), 0);
	assert_int_equal(sim_exec_launch(exec, stream), 0);
	assert_int_equal(graph_bytes_used(), 1024);
	sim_exec_destroy(exec);
	assert_int_equal(graph_bytes_used(), 1024);
	assert_int_equal(sim_memory_free(work.address, SIM_MEMORY_DEVICE), 0);
	sim_graph_memory_trim(context->device);
	assert_int_equal(context->device->graph_pool->reserved_bytes, 1024);
	sim_graph_destroy(graph);
	sim_graph_memory_trim(context->device);
	assert_int_equal(context->device->graph_pool->reserved_bytes, 0);
}

static void what_is_captured_becomes_nodes_and_does_not_run(void **state)
{
	struct sim_stream *a = make_stream(1), *b = make_stream(1);
	struct sim_event *fork = make_event(), *join = make_event();
	struct sim_work work = kernel("a"), to_fork = record(fork), to_join = record(join);
	struct sim_work wait_fork = wait_for(fork), wait_join = wait_for(join);
	struct sim_graph *graph;

	(void)state;
	assert_int_equal(sim_capture_begin(a, SIM_CAPTURE_GLOBAL, NULL, NULL, 0), 0);
	sim_stream_submit(a, &work, NULL);
	sim_stream_submit(a, &to_fork, NULL);
	sim_stream_submit(b, &wait_fork, NULL);
	sim_stream_submit(b, &work, NULL);
	sim_stream_submit(b, &to_join, NULL);
	sim_stream_submit(a, &work, NULL);
	sim_stream_submit(a, &wait_join, NULL);
	sim_stream_submit(a, &work, NULL);
	assert_int_equal(sim_capture_end(a, &graph), 0);
	assert_int_equal(graph->n_nodes, 4);
	assert_int_equal(graph->nodes[3]->n_after, 2);
	assert_null(b->end.capture);
	assert_int_equal(sim_stream_query(a), 0);
}

static void a_capture_that_is_not_joined_fails(void **state)
{
	struct sim_stream *a = make_stream(1), *b = make_stream(1);
	struct sim_event *fork = make_event();
	struct sim_work work = kernel("a"), to_fork = record(fork), wait_fork = wait_for(fork);
	struct sim_graph *graph;

	(void)state;
	sim_capture_begin(a, SIM_CAPTURE_GLOBAL, NULL, NULL, 0);
	sim_stream_submit(a, &to_fork, NULL);
	sim_stream_submit(b, &wait_fork, NULL);
	sim_stream_submit(b, &work, NULL);
	assert_int_equal(sim_capture_end(a, &graph), SIM_CAPTURE_UNJOINED);
	assert_null(graph);
}

static void waiting_for_a_stream_that_captures_breaks_the_capture(void **state)
{
	struct sim_stream *stream = make_stream(1);
	struct sim_work work = kernel("a");
	struct sim_graph *graph;

	(void)state;
	sim_capture_begin(stream, SIM_CAPTURE_THREAD_LOCAL, NULL, NULL, 0);
	assert_int_equal(sim_stream_synchronize(stream), SIM_CAPTURE_UNSUPPORTED);
	assert_int_equal(sim_stream_submit(stream, &work, NULL), SIM_CAPTURE_INVALIDATED);
	assert_int_equal(sim_capture_end(stream, &graph), SIM_CAPTURE_INVALIDATED);
}

static void allocations_break_a_capture_unless_it_is_relaxed(void **state)
{
	struct sim_stream *stream = make_stream(1);
	struct sim_graph *graph;

	(void)state;
	sim_capture_begin(stream, SIM_CAPTURE_RELAXED, NULL, NULL, 0);
	assert_int_equal(sim_capture_check_call(), 0);
	assert_int_equal(sim_capture_end(stream, &graph), 0);
	sim_capture_begin(stream, SIM_CAPTURE_GLOBAL, NULL, NULL, 0);
	assert_int_equal(sim_capture_exchange_mode(SIM_CAPTURE_RELAXED), SIM_CAPTURE_GLOBAL);
	assert_int_equal(sim_capture_check_call(), 0);
	sim_capture_exchange_mode(SIM_CAPTURE_GLOBAL);
	assert_int_equal(sim_capture_check_call(), SIM_CAPTURE_UNSUPPORTED);
	assert_int_equal(sim_capture_end(stream, &graph), SIM_CAPTURE_INVALIDATED);
}

static void count(void *data)
{
	++*(int *)data;
}

static void an_object_lives_as_long_as_a_graph_needs_it(void **state)
{
	struct sim_graph *graph = sim_graph_create();
	struct sim_user_object *object = calloc(1, sizeof(*object));
	struct sim_exec *exec;
	int n = 0;

	(void)state;
	*object = (struct sim_user_object){count, &n, 1};
	add(graph, "a", NULL);
	sim_graph_retain(graph, object, 1);
	sim_user_object_release(object, 1);
	sim_exec_create(graph, &exec);
	sim_graph_destroy(graph);
	assert_int_equal(n, 0);
	sim_exec_destroy(exec);
	assert_int_equal(n, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_run_when_what_they_depend_on_has_ended),
		cmocka_unit_test(clones_have_ids_of_their_own_and_refer_to_their_originals),
		cmocka_unit_test(a_circle_can_not_be_instantiated),
		cmocka_unit_test(launches_of_one_graph_do_not_overlap),
		cmocka_unit_test(a_graph_within_a_graph_runs_as_one_node),
		cmocka_unit_test(a_body_runs_as_often_as_its_condition_demands),
		cmocka_unit_test(memory_of_a_graph_is_alive_from_a_launch_to_its_free),
		cmocka_unit_test(what_is_captured_becomes_nodes_and_does_not_run),
		cmocka_unit_test(a_capture_that_is_not_joined_fails),
		cmocka_unit_test(waiting_for_a_stream_that_captures_breaks_the_capture),
		cmocka_unit_test(allocations_break_a_capture_unless_it_is_relaxed),
		cmocka_unit_test(an_object_lives_as_long_as_a_graph_needs_it),
	};

	return cmocka_run_group_tests(tests, begin_simulation, NULL);
}
