/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Many threads on the simulated device: nothing is lost, and every stream keeps its order. */
#include <pthread.h>

#include "test/unit/fixtures/simcuda_fixture.h"

enum { THREADS = 16, ROUNDS = 500 };

static struct sim_event *shared_event;
static int n_ended; /* written with the engine's lock */
static int n_out_of_order;
static uint64_t last_end_ns[THREADS + 64]; /* by stream */

static void count(const struct sim_op *op)
{
	if (op->work.kind != SIM_KERNEL)
		return;
	n_ended++;
	n_out_of_order += op->start_ns < last_end_ns[op->stream_id];
	last_end_ns[op->stream_id] = op->end_ns;
}

static void *work(void *unused)
{
	struct sim_stream *stream;
	struct sim_pool *pool = sim_device(0)->default_pool;
	struct sim_work launch = kernel("a"), to_record = record(shared_event),
			to_wait = wait_for(shared_event);

	(void)unused;
	if (sim_stream_create(context, 1, 0, &stream))
		return "no stream";
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t address = 0, pooled = 0;

		if (sim_stream_submit(stream, &launch, NULL) ||
		    sim_memory_alloc(sim_device(0), 1, 4096, &address) ||
		    sim_pool_alloc(pool, stream, 4096, &pooled))
			return "no memory";
		if (sim_stream_submit(stream, i % 2 ? &to_record : &to_wait, NULL))
			return "no event";
		if (sim_pool_free(pooled, stream) || sim_memory_free(address, SIM_MEMORY_DEVICE))
			return "not freed";
		if (i % 50 == 0 && sim_stream_synchronize(stream))
			return "not synchronised";
	}
	return sim_stream_synchronize(stream) ? "not synchronised" : NULL;
}

static void threads_lose_nothing_and_streams_keep_their_order(void **state)
{
	static const struct sim_tracer tracer = {.op_ends = count};
	uint64_t before = sim_device(0)->free_memory.free_bytes;
	pthread_t threads[THREADS];

	(void)state;
	shared_event = make_event();
	sim_tracer_set(&tracer);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
	for (int i = 0; i < THREADS; i++) {
		void *failed;

		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
	sim_context_synchronize(context);
	sim_tracer_set(NULL);
	sim_pool_trim(sim_device(0)->default_pool, 0);
	assert_int_equal(n_ended, THREADS * ROUNDS);
	assert_int_equal(n_out_of_order, 0);
	assert_int_equal(sim_device(0)->free_memory.free_bytes, before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_lose_nothing_and_streams_keep_their_order),
	};

	return cmocka_run_group_tests(tests, begin_simulation, NULL);
}
