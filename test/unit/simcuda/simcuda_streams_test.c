/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The order and the times of what is submitted to streams of the simulated device. */
#include "test/unit/fixtures/simcuda_fixture.h"

static void kernels_of_a_stream_run_one_after_the_other(void **state)
{
	struct sim_stream *stream = make_stream(1);
	uint64_t begin = sim_now();
	struct sim_op *first = submit(stream, kernel("a")), *second = submit(stream, kernel("b"));

	(void)state;
	assert_int_equal(sim_stream_query(stream), SIM_NOT_READY);
	assert_int_equal(sim_stream_synchronize(stream), 0);
	assert_int_equal(first->start_ns, begin + LAUNCH_NS);
	assert_int_equal(first->end_ns, begin + LAUNCH_NS + KERNEL_NS);
	assert_int_equal(second->start_ns, first->end_ns);
	assert_int_equal(sim_now(), second->end_ns);
	assert_int_equal(sim_stream_query(stream), 0);
}

static void streams_overlap_up_to_what_the_device_runs_at_a_time(void **state)
{
	struct sim_op *ops[CONCURRENT + 1];
	uint64_t begin = sim_now();

	(void)state;
	for (int i = 0; i <= CONCURRENT; i++)
		ops[i] = submit(make_stream(1), kernel("a"));
	assert_int_equal(sim_context_synchronize(context), 0);
	for (int i = 0; i < CONCURRENT; i++)
		assert_int_equal(ops[i]->start_ns, begin + LAUNCH_NS);
	assert_int_equal(ops[CONCURRENT]->start_ns, ops[0]->end_ns);
}

static void a_pattern_names_how_long_a_kernel_takes(void **state)
{
	struct sim_stream *stream = make_stream(1);
	struct sim_op *op = submit(stream, kernel("slow_one"));

	(void)state;
	sim_stream_synchronize(stream);
	assert_int_equal(op->end_ns - op->start_ns, 5000);
}

static void a_stream_waits_for_an_event_of_another(void **state)
{
	struct sim_stream *a = make_stream(1), *b = make_stream(1);
	struct sim_event *event = make_event();
	struct sim_op *before = submit(a, kernel("slow")), *after;

	(void)state;
	submit(a, record(event));
	submit(b, wait_for(event));
	after = submit(b, kernel("a"));
	assert_int_equal(sim_event_query(event), SIM_NOT_READY);
	assert_int_equal(sim_stream_synchronize(b), 0);
	assert_int_equal(after->start_ns, before->end_ns);
}

static void a_wait_takes_the_record_of_its_moment(void **state)
{
	struct sim_stream *a = make_stream(1), *b = make_stream(1);
	struct sim_event *event = make_event();
	struct sim_op *late, *after;

	(void)state;
	submit(a, record(event));
	submit(b, wait_for(event));
	late = submit(a, kernel("slow"));
	submit(a, record(event));
	after = submit(b, kernel("a"));
	sim_context_synchronize(context);
	assert_true(after->start_ns < late->end_ns);
}

static void an_event_that_was_never_recorded_is_reached(void **state)
{
	(void)state;
	assert_int_equal(sim_event_query(make_event()), 0);
}

static void elapsed_time_is_that_of_the_device(void **state)
{
	struct sim_stream *stream = make_stream(1);
	struct sim_event *from = make_event(), *to = make_event();
	float milliseconds;

	(void)state;
	submit(stream, record(from));
	submit(stream, kernel("slow"));
	submit(stream, record(to));
	assert_int_equal(sim_event_elapsed(from, to, &milliseconds), SIM_NOT_READY);
	sim_event_synchronize(to);
	assert_int_equal(sim_event_elapsed(from, to, &milliseconds), 0);
	assert_float_equal(milliseconds, (5000 + LAUNCH_NS) / 1e6, 1e-7);
}

static void the_legacy_stream_and_blocking_streams_wait_for_each_other(void **state)
{
	struct sim_stream *blocking = make_stream(0), *other = make_stream(1);
	struct sim_op *first = submit(blocking, kernel("slow")),
		      *legacy = submit(context->legacy, kernel("a"));
	struct sim_op *last = submit(blocking, kernel("a")), *free_one = submit(other, kernel("a"));

	(void)state;
	sim_context_synchronize(context);
	assert_int_equal(legacy->start_ns, first->end_ns);
	assert_int_equal(last->start_ns, legacy->end_ns);
	assert_true(free_one->start_ns < legacy->start_ns);
}

static void a_full_queue_blocks_the_caller(void **state)
{
	struct sim_stream *stream = make_stream(1);
	uint64_t begin = sim_now();

	(void)state;
	for (int i = 0; i < 8; i++)
		sim_op_unref(submit(stream, kernel("a")));
	assert_int_equal(sim_now(), begin);
	sim_op_unref(submit(stream, kernel("a")));
	assert_int_equal(sim_now(), begin + LAUNCH_NS + KERNEL_NS);
	sim_stream_synchronize(stream);
}

static void copies_of_one_direction_share_an_engine_and_others_overlap(void **state)
{
	struct sim_stream *a = make_stream(1), *b = make_stream(1), *c = make_stream(1);
	uint64_t device, host;
	struct sim_work in, out;
	struct sim_op *first, *second, *back;

	(void)state;
	sim_memory_alloc(sim_device(0), context->id, 4000, &device);
	sim_memory_alloc_host(sim_device(0), context->id, 4000, SIM_MEMORY_PINNED, &host);
	assert_int_equal(sim_copy_make(&in, device, host, 1000, true), 0);
	assert_int_equal(sim_copy_make(&out, host + 2000, device + 2000, 1000, true), 0);
	assert_int_equal(in.duration_ns, 10 + 1000);
	first = submit(a, in);
	second = submit(b, in);
	back = submit(c, out);
	sim_context_synchronize(context);
	assert_int_equal(second->start_ns, first->end_ns);
	assert_int_equal(back->start_ns, first->start_ns);
}

static void bytes_move_when_the_device_comes_to_the_copy(void **state)
{
	struct sim_stream *stream = make_stream(1);
	uint64_t device, pinned;
	char pageable[16] = "pageable", *host;
	struct sim_work work;

	(void)state;
	sim_memory_alloc(sim_device(0), context->id, 32, &device);
	sim_memory_alloc_host(sim_device(0), context->id, 32, SIM_MEMORY_PINNED, &pinned);
	host = (char *)(uintptr_t)pinned;
	strcpy(host, "early");
	sim_copy_make(&work, device, pinned, 16, true);
	sim_op_unref(submit(stream, work));
	/* The copy has not begun: it carries what is written now. */
	strcpy(host, "late");
	sim_copy_make(&work, device + 16, (uint64_t)(uintptr_t)pageable, 16, true);
	sim_op_unref(submit(stream, work));
	/* Pageable memory was read by the call. */
	strcpy(pageable, "overwritten");
	sim_copy_make(&work, pinned, device, 32, true);
	sim_op_unref(submit(stream, work));
	sim_stream_synchronize(stream);
	assert_string_equal(host, "late");
	assert_string_equal(host + 16, "pageable");
}

static void note(void *data)
{
	*(uint64_t *)data = sim_now();
}

static void a_host_function_is_called_between_what_is_around_it(void **state)
{
	struct sim_stream *stream = make_stream(1);
	uint64_t called_ns = 0;
	struct sim_work call = {.kind = SIM_HOST, .host = {note, &called_ns}};
	struct sim_op *before = submit(stream, kernel("a")), *after;

	(void)state;
	sim_op_unref(submit(stream, call));
	after = submit(stream, kernel("a"));
	sim_stream_synchronize(stream);
	assert_true(called_ns >= before->end_ns);
	assert_true(after->start_ns >= called_ns);
}

static void a_destroyed_handle_is_not_live(void **state)
{
	struct sim_stream *stream = make_stream(1);
	struct sim_event *event = make_event();

	(void)state;
	sim_stream_destroy(stream);
	sim_event_destroy(event);
	assert_false(sim_stream_is_live(stream));
	assert_false(sim_event_is_live(event));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_of_a_stream_run_one_after_the_other),
		cmocka_unit_test(streams_overlap_up_to_what_the_device_runs_at_a_time),
		cmocka_unit_test(a_pattern_names_how_long_a_kernel_takes),
		cmocka_unit_test(a_stream_waits_for_an_event_of_another),
		cmocka_unit_test(a_wait_takes_the_record_of_its_moment),
		cmocka_unit_test(an_event_that_was_never_recorded_is_reached),
		cmocka_unit_test(elapsed_time_is_that_of_the_device),
		cmocka_unit_test(the_legacy_stream_and_blocking_streams_wait_for_each_other),
		cmocka_unit_test(a_full_queue_blocks_the_caller),
		cmocka_unit_test(copies_of_one_direction_share_an_engine_and_others_overlap),
		cmocka_unit_test(bytes_move_when_the_device_comes_to_the_copy),
		cmocka_unit_test(a_host_function_is_called_between_what_is_around_it),
		cmocka_unit_test(a_destroyed_handle_is_not_live),
	};

	return cmocka_run_group_tests(tests, begin_simulation, NULL);
}
