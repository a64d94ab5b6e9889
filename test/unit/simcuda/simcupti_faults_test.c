/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Injected faults of CUPTI and its clock, so that tests of collectors can rely on them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#if !__has_include(<cupti.h>)

static void nothing_is_simulated_without_the_headers_of_cuda(void **state)
{
	(void)state;
	skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_simulated_without_the_headers_of_cuda)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

#include <cuda.h>
#include <cupti.h>

enum { MAX_KERNELS = 64, SECOND = 1000000000, OWN_CLOCK = 1000, BUFFER_BYTES = 512 };

/* Destroyed objects are kept, to distinguish a stale handle from a live one: no leak. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

static struct {
	uint64_t start, end;
} kernels[MAX_KERNELS];
static int n_kernels, n_requested, n_completed;
static CUfunction function;
static CUstream stream;

static void give_buffer(uint8_t **buffer, size_t *size, size_t *max_records)
{
	*buffer = aligned_alloc(8, BUFFER_BYTES);
	*size = BUFFER_BYTES;
	*max_records = 1;
	n_requested++;
}

static void take_buffer(CUcontext context, uint32_t stream_id, uint8_t *buffer, size_t size,
			size_t valid)
{
	CUpti_Activity *record = NULL;

	(void)context, (void)stream_id, (void)size;
	n_completed++;
	while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
		kernels[n_kernels].start = ((CUpti_ActivityKernel9 *)record)->start;
		kernels[n_kernels++].end = ((CUpti_ActivityKernel9 *)record)->end;
	}
	free(buffer);
}

static int begin(void **state)
{
	CUmodule module;
	CUcontext context;

	(void)state;
	setenv("SIMCUDA_CLOCK", "virtual", 1);
	setenv("SIMCUDA_KERNEL_NS", "1000000000", 1);
	/* 50 parts in a million fast; five seconds after the begin one second back. */
	setenv("SIMCUDA_SKEW_PPB", "50000", 1);
	setenv("SIMCUDA_CLOCK_STEPS", "5000000000:-1000000000", 1);
	setenv("SIMCUDA_UNTIMED_KERNELS", "10", 1);
	setenv("SIMCUDA_LOST_BUFFERS", "12", 1);
	setenv("SIMCUDA_MIXED_CLOCKS", "1", 1);
	return cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
	       cuModuleLoadData(&module, "code") ||
	       cuModuleGetFunction(&function, module, "kernel") ||
	       cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) ||
	       cuptiActivityRegisterCallbacks(give_buffer, take_buffer) ||
	       cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}

static void launch(int n)
{
	n_kernels = 0;
	for (int i = 0; i < n; i++)
		assert_int_equal(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL),
				 0);
	cuStreamSynchronize(stream);
	cuptiActivityFlushAll(0);
}

static void a_clock_that_is_fast_lengthens_what_it_measures(void **state)
{
	(void)state;
	launch(1);
	assert_int_equal(kernels[0].end - kernels[0].start, SECOND + SECOND / 1000000 * 50);
}

static void a_step_of_the_clock_can_end_a_kernel_before_its_start(void **state)
{
	int n_backwards = 0;

	(void)state;
	launch(6);
	for (int i = 0; i < n_kernels; i++)
		n_backwards += kernels[i].end < kernels[i].start + SECOND / 2;
	assert_int_equal(n_backwards, 1);
}

static void every_tenth_kernel_has_no_times(void **state)
{
	(void)state;
	launch(3);
	assert_int_equal(n_kernels, 3);
	assert_int_not_equal(kernels[1].start, 0);
	assert_int_equal(kernels[2].start, 0);
	assert_int_equal(kernels[2].end, 0);
}

static void every_twelfth_buffer_is_never_handed_back(void **state)
{
	size_t dropped;

	(void)state;
	launch(2);
	assert_int_equal(n_kernels, 1);
	assert_int_equal(n_requested, n_completed + 1);
	assert_int_equal(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped), 0);
	assert_int_equal(dropped, 0);
}

static uint64_t own_clock(void)
{
	return OWN_CLOCK;
}

static void registering_a_clock_again_spoils_the_next_kernels(void **state)
{
	(void)state;
	cuptiActivityRegisterTimestampCallback(own_clock);
	launch(1);
	assert_int_equal(kernels[0].start, OWN_CLOCK);
	cuptiActivityRegisterTimestampCallback(own_clock);
	launch(3);
	assert_true(kernels[0].start > SECOND);
	assert_true(kernels[1].start > SECOND);
	assert_int_equal(kernels[2].start, OWN_CLOCK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_clock_that_is_fast_lengthens_what_it_measures),
		cmocka_unit_test(a_step_of_the_clock_can_end_a_kernel_before_its_start),
		cmocka_unit_test(every_tenth_kernel_has_no_times),
		cmocka_unit_test(every_twelfth_buffer_is_never_handed_back),
		cmocka_unit_test(registering_a_clock_again_spoils_the_next_kernels),
	};

	return cmocka_run_group_tests(tests, begin, NULL);
}

#endif
