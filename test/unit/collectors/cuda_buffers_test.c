/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Buffers for CUPTI's records when it requests more than there are: its drops are counted, and so
 * are ours.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/producer/counter.h"
#include "collectors/cuda/cuda.h"
#include "collectors/cuda/cupti/cuda_buffers.h"
#include "collectors/cuda/cupti/cuda_records.h"
#include "collectors/cuda/cupti/cuda_tee.h"
#include "shim/cuda/cupti.h"

/* What this file uses of others. */
struct cupti_functions torsh_cupti;
struct cuda_losses torsh_cuda_losses;
uint32_t torsh_cuda_version;

static uint32_t n_taken;

#define torsh_cuda_is_live() 1
#define torsh_cuda_take_records(buffer, n_valid) ((void)(buffer), (void)(n_valid), n_taken++)
#define torsh_cuda_tee_records(buffer, n_valid) ((void)(buffer), (void)(n_valid))
#include "collectors/cuda/cupti/cuda_buffers.c"

static _Atomic uint64_t counters[N_COUNTERS];
_Atomic uint64_t *torsh_counters = counters;
static size_t n_dropped_by_cupti;

static int report_dropped(void *context, uint32_t stream, size_t *n)
{
	(void)context;
	(void)stream;
	*n = n_dropped_by_cupti;
	n_dropped_by_cupti = 0;
	return CUPTI_DONE;
}

static uint8_t *request(void)
{
	size_t n_bytes, n_records;
	uint8_t *buffer;

	torsh_cuda_request_buffer(&buffer, &n_bytes, &n_records);
	assert_int_equal(n_bytes, buffer ? BUFFER_BYTES : 0);
	return buffer;
}

static uint64_t n_lost(void)
{
	return atomic_load(&counters[COUNTER_device_records_lost]);
}

static void a_request_beyond_the_limit_gets_no_buffer(void **state)
{
	static uint8_t *buffers[BUFFERS_MAX];

	(void)state;
	torsh_cuda_version = VERSION_TAKES_NONE;
	for (uint32_t i = 0; i < BUFFERS_MAX; i++) {
		buffers[i] = request();
		assert_non_null(buffers[i]);
		*buffers[i] = 1;
	}
	assert_null(request());
	assert_int_equal(torsh_cuda_buffers_out(), BUFFERS_MAX);
	n_dropped_by_cupti = 7;
	torsh_cuda_complete_buffer(NULL, 0, buffers[0], BUFFER_BYTES, 1);
	assert_int_equal(n_taken, 1);
	assert_int_equal(n_lost(), 7);
	assert_ptr_equal(request(), buffers[0]);
}

/* An older CUPTI would not survive it. */
static void one_that_must_get_some_gets_what_is_thrown_away(void **state)
{
	uint8_t *buffer;

	(void)state;
	torsh_cuda_version = VERSION_TAKES_NONE - 1;
	buffer = request();
	assert_non_null(buffer);
	assert_ptr_equal(request(), buffer);
	torsh_cuda_complete_buffer(NULL, 0, buffer, BUFFER_BYTES, 1);
	assert_int_equal(n_taken, 1);
	assert_int_equal(atomic_load(&torsh_cuda_losses.without_room), 1);
	assert_int_equal(n_lost(), 8);
}

static int begin(void **state)
{
	(void)state;
	torsh_cupti.ActivityGetNumDroppedRecords = report_dropped;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_beyond_the_limit_gets_no_buffer),
		cmocka_unit_test(one_that_must_get_some_gets_what_is_thrown_away),
	};

	return cmocka_run_group_tests(tests, begin, NULL);
}
