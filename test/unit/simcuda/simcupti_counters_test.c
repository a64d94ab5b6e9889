/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The rules of CUPTI's counters, as the simulated one enforces them, seen by a client that uses
 * only the public headers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#if __has_include(<cupti_version.h>)
#include <cupti_version.h>
#endif

#if !defined(CUPTI_API_VERSION) || CUPTI_API_VERSION < 130200

int main(void)
{
	puts("there are no headers of CUPTI 13.2 or later (PyPI's wheels below build/venv, or CUDA_HOME)");
	return 77;
}

#else

#include <cuda.h>
#include <cupti.h>
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

enum { KERNEL_NS = 5000, RANGES = 2, INTERVAL_NS = 10000, SAMPLES = 8, BUFFER_BYTES = 1 << 20 };

/* Destroyed objects are kept, to distinguish a stale handle from a live one: no leak. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

static CUcontext context;
static CUfunction function, collective;
static CUstream stream;
static char log_path[] = "/tmp/simcupti-XXXXXX";

/* The parameters of a call, with the size that they have. */
#define PARAMETERS(Type, name, ...) Type name = {.structSize = Type##_STRUCT_SIZE, __VA_ARGS__}

static int begin(void **state)
{
	PARAMETERS(CUpti_Profiler_Initialize_Params, initialize, .pPriv = NULL);
	CUmodule module;
	CUdevice device;
	int fd = mkstemp(log_path);

	(void)state;
	setenv("SIMCUDA_CLOCK", "virtual", 1);
	setenv("SIMCUDA_STRICT", "0", 1);
	setenv("SIMCUDA_LOG", log_path, 1);
	setenv("SIMCUDA_LOG_AT_ONCE", "1", 1);
	setenv("SIMCUDA_CALL_NS", "0", 1);
	if (fd < 0 || close(fd))
		return 1;
	return cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) ||
	       cuCtxSetCurrent(context) || cuModuleLoadData(&module, "code") ||
	       cuModuleGetFunction(&function, module, "_Z4workPf") ||
	       cuModuleGetFunction(&collective, module, "ncclDevKernel_AllReduce") ||
	       cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) ||
	       cuptiProfilerInitialize(&initialize) ||
	       cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}

static int end(void **state)
{
	(void)state;
	return unlink(log_path);
}

/* How many rules were broken so far. */
static int n_violations(void)
{
	char line[4096];
	FILE *file = fopen(log_path, "r");
	int n = 0;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		n += strstr(line, "\"kind\":\"violation\"") != NULL;
	fclose(file);
	return n;
}

static void launch(CUfunction kernel)
{
	assert_int_equal(cuLaunchKernel(kernel, 2, 1, 1, 32, 1, 1, 0, stream, NULL, NULL), 0);
}

static CUpti_Profiler_Host_Object *make_host(CUpti_ProfilerType type)
{
	PARAMETERS(CUpti_Profiler_Host_Initialize_Params, host, .profilerType = type,
		   .pChipName = "GH100");

	assert_int_equal(cuptiProfilerHostInitialize(&host), 0);
	return host.pHostObject;
}

static CUptiResult add(CUpti_Profiler_Host_Object *host, const char **names, size_t n)
{
	PARAMETERS(CUpti_Profiler_Host_ConfigAddMetrics_Params, metrics, .pHostObject = host,
		   .ppMetricNames = names, .numMetrics = n);

	return cuptiProfilerHostConfigAddMetrics(&metrics);
}

/* The config image of what was added; *passes is how many it takes. */
static size_t make_config(CUpti_Profiler_Host_Object *host, uint8_t *image, size_t room,
			  size_t *passes)
{
	PARAMETERS(CUpti_Profiler_Host_GetConfigImageSize_Params, size, .pHostObject = host);
	PARAMETERS(CUpti_Profiler_Host_GetConfigImage_Params, config, .pHostObject = host,
		   .pConfigImage = image);
	PARAMETERS(CUpti_Profiler_Host_GetNumOfPasses_Params, number, .pConfigImage = image);

	assert_int_equal(cuptiProfilerHostGetConfigImageSize(&size), 0);
	assert_true(size.configImageSize <= room);
	config.configImageSize = number.configImageSize = size.configImageSize;
	assert_int_equal(cuptiProfilerHostGetConfigImage(&config), 0);
	assert_int_equal(cuptiProfilerHostGetNumOfPasses(&number), 0);
	*passes = number.numOfPasses;
	return size.configImageSize;
}

static void one_unknown_name_refuses_all(void **state)
{
	const char *names[] = {"gpu__time_duration.sum", "dram__bytes_written.sum"};
	PARAMETERS(CUpti_Profiler_Host_Initialize_Params, other, .pChipName = "GA100");
	PARAMETERS(CUpti_Profiler_Host_Initialize_Params, larger, .pChipName = "GH100");

	(void)state;
	assert_int_equal(add(make_host(CUPTI_PROFILER_TYPE_RANGE_PROFILER), names, 2),
			 CUPTI_ERROR_INVALID_METRIC_NAME);
	assert_int_equal(add(make_host(CUPTI_PROFILER_TYPE_RANGE_PROFILER), names, 1), 0);
	assert_int_equal(cuptiProfilerHostInitialize(&other), CUPTI_ERROR_INVALID_CHIP_NAME);
	larger.structSize += 8;
	assert_int_equal(cuptiProfilerHostInitialize(&larger), CUPTI_ERROR_INVALID_PARAMETER);
}

static void metrics_take_as_many_passes_as_the_worst_of_them(void **state)
{
	const char *names[] = {"gpu__time_duration.sum", "lts__t_sector_hit_rate.pct",
			       "sm__throughput.avg.pct_of_peak_sustained_elapsed"};
	uint8_t image[4096];
	size_t passes;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		CUpti_Profiler_Host_Object *host = make_host(CUPTI_PROFILER_TYPE_RANGE_PROFILER);
		static const size_t expected[] = {1, 2, 8};

		assert_int_equal(add(host, names, i + 1), 0);
		make_config(host, image, sizeof(image), &passes);
		assert_int_equal(passes, expected[i]);
	}
}

/* A range profiler of the context that is ready to start. */
static struct {
	CUpti_Profiler_Host_Object *host;
	CUpti_RangeProfiler_Object *object;
	uint8_t config[4096], image[4096];
	size_t image_bytes;
} ranges;

static const char *range_names[] = {"gpu__time_duration.sum", "dram__bytes_read.sum"};

static void make_ranges(void)
{
	PARAMETERS(CUpti_RangeProfiler_Enable_Params, enable, .ctx = context);
	PARAMETERS(CUpti_RangeProfiler_GetCounterDataSize_Params, size, .pMetricNames = range_names,
		   .numMetrics = 2, .maxNumOfRanges = RANGES, .maxNumRangeTreeNodes = RANGES);
	PARAMETERS(CUpti_RangeProfiler_CounterDataImage_Initialize_Params, initialize,
		   .pCounterData = ranges.image);
	PARAMETERS(CUpti_RangeProfiler_SetConfig_Params, config, .pConfig = ranges.config,
		   .pCounterDataImage = ranges.image, .range = CUPTI_AutoRange,
		   .replayMode = CUPTI_KernelReplay, .maxRangesPerPass = RANGES,
		   .numNestingLevels = 1, .minNestingLevel = 1, .targetNestingLevel = 1);
	PARAMETERS(CUpti_RangeProfiler_Start_Params, start, .pPriv = NULL);
	size_t passes;

	ranges.host = make_host(CUPTI_PROFILER_TYPE_RANGE_PROFILER);
	assert_int_equal(add(ranges.host, range_names, 2), 0);
	assert_int_equal(cuptiRangeProfilerEnable(&enable), 0);
	ranges.object = enable.pRangeProfilerObject;
	start.pRangeProfilerObject = ranges.object;
	assert_int_equal(cuptiRangeProfilerStart(&start), CUPTI_ERROR_INVALID_OPERATION);
	size.pRangeProfilerObject = initialize.pRangeProfilerObject = config.pRangeProfilerObject =
		ranges.object;
	assert_int_equal(cuptiRangeProfilerGetCounterDataSize(&size), 0);
	assert_true(size.counterDataSize <= sizeof(ranges.image));
	initialize.counterDataSize = config.counterDataImageSize = ranges.image_bytes =
		size.counterDataSize;
	config.configSize = make_config(ranges.host, ranges.config, sizeof(ranges.config), &passes);
	/* Before the image is one. */
	assert_int_equal(cuptiRangeProfilerSetConfig(&config), CUPTI_ERROR_INVALID_PARAMETER);
	assert_int_equal(cuptiRangeProfilerCounterDataImageInitialize(&initialize), 0);
	assert_int_equal(cuptiRangeProfilerSetConfig(&config), 0);
}

static void start_ranges(void)
{
	PARAMETERS(CUpti_RangeProfiler_Start_Params, start, .pRangeProfilerObject = ranges.object);

	assert_int_equal(cuptiRangeProfilerStart(&start), 0);
}

static void stop_ranges(void)
{
	PARAMETERS(CUpti_RangeProfiler_Stop_Params, stop, .pRangeProfilerObject = ranges.object);

	assert_int_equal(cuptiRangeProfilerStop(&stop), 0);
	assert_int_equal(stop.isAllPassSubmitted, 1);
}

static void end_ranges(void)
{
	PARAMETERS(CUpti_RangeProfiler_Disable_Params, disable,
		   .pRangeProfilerObject = ranges.object);

	assert_int_equal(cuptiRangeProfilerDisable(&disable), 0);
	memset(&ranges, 0, sizeof(ranges));
}

static void kernels_are_counted_between_start_and_stop(void **state)
{
	double values[2];

	(void)state;
	make_ranges();
	launch(function);
	start_ranges();
	for (int i = 0; i < RANGES + 1; i++)
		launch(function);
	{
		PARAMETERS(CUpti_RangeProfiler_DecodeData_Params, early,
			   .pRangeProfilerObject = ranges.object);

		assert_int_equal(cuptiRangeProfilerDecodeData(&early),
				 CUPTI_ERROR_INVALID_OPERATION);
	}
	stop_ranges();
	launch(function);
	PARAMETERS(CUpti_RangeProfiler_DecodeData_Params, decode,
		   .pRangeProfilerObject = ranges.object);
	PARAMETERS(CUpti_RangeProfiler_GetCounterDataInfo_Params, info,
		   .pCounterDataImage = ranges.image, .counterDataImageSize = ranges.image_bytes);
	PARAMETERS(CUpti_Profiler_Host_EvaluateToGpuValues_Params, evaluate,
		   .pHostObject = ranges.host, .pCounterDataImage = ranges.image,
		   .counterDataImageSize = ranges.image_bytes, .ppMetricNames = range_names,
		   .numMetrics = 2, .pMetricValues = values);

	assert_int_equal(cuptiRangeProfilerDecodeData(&decode), 0);
	assert_int_equal(decode.numOfRangeDropped, 1);
	assert_int_equal(cuptiRangeProfilerGetCounterDataInfo(&info), 0);
	assert_int_equal(info.numTotalRanges, RANGES);
	for (evaluate.rangeIndex = 0; evaluate.rangeIndex < RANGES; evaluate.rangeIndex++) {
		assert_int_equal(cuptiProfilerHostEvaluateToGpuValues(&evaluate), 0);
		assert_true(values[0] == KERNEL_NS && values[1] == 64 * 2 * 32);
	}
	end_ranges();
}

static void each_kernel_of_a_graph_is_a_range(void **state)
{
	PARAMETERS(CUpti_RangeProfiler_GetCounterDataInfo_Params, info,
		   .pCounterDataImage = ranges.image);
	PARAMETERS(CUpti_RangeProfiler_DecodeData_Params, decode, .pPriv = NULL);
	CUgraphExec exec;
	CUgraph graph;

	(void)state;
	assert_int_equal(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), 0);
	launch(function);
	launch(function);
	assert_int_equal(cuStreamEndCapture(stream, &graph), 0);
	assert_int_equal(cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
	make_ranges();
	start_ranges();
	assert_int_equal(cuGraphLaunch(exec, stream), 0);
	stop_ranges();
	info.counterDataImageSize = ranges.image_bytes;
	decode.pRangeProfilerObject = ranges.object;
	assert_int_equal(cuptiRangeProfilerDecodeData(&decode), 0);
	assert_int_equal(cuptiRangeProfilerGetCounterDataInfo(&info), 0);
	assert_int_equal(info.numTotalRanges, 2);
	end_ranges();
}

static void a_collective_that_is_counted_is_a_violation(void **state)
{
	int before = n_violations();

	(void)state;
	make_ranges();
	start_ranges();
	launch(function);
	stop_ranges();
	assert_int_equal(n_violations(), before);
	start_ranges();
	launch(collective);
	stop_ranges();
	assert_int_equal(n_violations(), before + 1);
	/* One that is waited for is the same. */
	launch(collective);
	start_ranges();
	stop_ranges();
	assert_int_equal(n_violations(), before + 2);
	end_ranges();
}

static void counting_while_a_stream_is_captured_is_a_violation(void **state)
{
	int before = n_violations();
	CUgraph graph;

	(void)state;
	make_ranges();
	assert_int_equal(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), 0);
	start_ranges();
	stop_ranges();
	cuStreamEndCapture(stream, &graph);
	assert_int_equal(n_violations(), before + 2);
	end_ranges();
}

/* ---- samples --------------------------------------------------------------------------------- */

static struct {
	CUpti_PmSampling_Object *object;
	uint8_t config[4096], image[4096];
	size_t image_bytes;
} samples;

static CUptiResult configure_samples(const char *name)
{
	PARAMETERS(CUpti_PmSampling_SetConfig_Params, config, .pPmSamplingObject = samples.object,
		   .pConfig = samples.config, .hardwareBufferSize = BUFFER_BYTES,
		   .samplingInterval = INTERVAL_NS,
		   .triggerMode = CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL);
	CUpti_Profiler_Host_Object *host = make_host(CUPTI_PROFILER_TYPE_PM_SAMPLING);
	size_t passes;

	assert_int_equal(add(host, &name, 1), 0);
	config.configSize = make_config(host, samples.config, sizeof(samples.config), &passes);
	return cuptiPmSamplingSetConfig(&config);
}

static void clear_samples(void)
{
	PARAMETERS(CUpti_PmSampling_CounterDataImage_Initialize_Params, image,
		   .pPmSamplingObject = samples.object, .pCounterData = samples.image,
		   .counterDataSize = samples.image_bytes);

	assert_int_equal(cuptiPmSamplingCounterDataImageInitialize(&image), 0);
}

static void start_samples(void)
{
	static const char *names[] = {"gr__cycles_active.sum"};
	PARAMETERS(CUpti_PmSampling_Enable_Params, enable, .deviceIndex = 0);
	PARAMETERS(CUpti_PmSampling_GetCounterDataSize_Params, size, .pMetricNames = names,
		   .numMetrics = 1, .maxSamples = SAMPLES);
	PARAMETERS(CUpti_PmSampling_Start_Params, start, .pPriv = NULL);

	assert_int_equal(cuptiPmSamplingEnable(&enable), 0);
	assert_int_equal(cuptiPmSamplingEnable(&enable), CUPTI_ERROR_INVALID_OPERATION);
	samples.object = start.pPmSamplingObject = size.pPmSamplingObject =
		enable.pPmSamplingObject;
	assert_int_equal(cuptiPmSamplingStart(&start), CUPTI_ERROR_INVALID_OPERATION);
	assert_int_equal(configure_samples("lts__t_sector_hit_rate.pct"),
			 CUPTI_ERROR_NOT_SUPPORTED);
	assert_int_equal(configure_samples(names[0]), 0);
	assert_int_equal(cuptiPmSamplingGetCounterDataSize(&size), 0);
	assert_true(size.counterDataSize <= sizeof(samples.image));
	samples.image_bytes = size.counterDataSize;
	clear_samples();
	assert_int_equal(cuptiPmSamplingStart(&start), 0);
}

static CUptiResult decode_samples(CUpti_PmSampling_DecodeData_Params *decode, size_t *n)
{
	PARAMETERS(CUpti_PmSampling_GetCounterDataInfo_Params, info,
		   .pCounterDataImage = samples.image, .counterDataImageSize = samples.image_bytes);
	CUptiResult result;

	*decode = (CUpti_PmSampling_DecodeData_Params){
		.structSize = CUpti_PmSampling_DecodeData_Params_STRUCT_SIZE,
		.pPmSamplingObject = samples.object,
		.pCounterDataImage = samples.image,
		.counterDataImageSize = samples.image_bytes,
	};
	result = cuptiPmSamplingDecodeData(decode);
	assert_int_equal(cuptiPmSamplingGetCounterDataInfo(&info), 0);
	*n = info.numCompletedSamples;
	return result;
}

static void end_samples(void)
{
	PARAMETERS(CUpti_PmSampling_Stop_Params, stop, .pPmSamplingObject = samples.object);
	PARAMETERS(CUpti_PmSampling_Disable_Params, disable, .pPmSamplingObject = samples.object);

	assert_int_equal(cuptiPmSamplingStop(&stop), 0);
	assert_int_equal(cuptiPmSamplingStop(&stop), CUPTI_ERROR_INVALID_OPERATION);
	assert_int_equal(cuptiPmSamplingDisable(&disable), 0);
}

static void run_for(int n_kernels)
{
	for (int i = 0; i < n_kernels; i++)
		launch(function);
	assert_int_equal(cuStreamSynchronize(stream), 0);
}

static void samples_beyond_the_image_are_lost(void **state)
{
	CUpti_PmSampling_DecodeData_Params decode;
	size_t n;

	(void)state;
	start_samples();
	run_for(2 * SAMPLES / 2);
	assert_int_equal(decode_samples(&decode, &n), 0);
	assert_int_equal(decode.decodeStopReason,
			 CUPTI_PM_SAMPLING_DECODE_STOP_REASON_END_OF_RECORDS);
	assert_true(n > 1 && n <= SAMPLES);
	clear_samples();
	run_for(10 * SAMPLES);
	assert_int_equal(decode_samples(&decode, &n), 0);
	assert_int_equal(decode.decodeStopReason,
			 CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL);
	assert_int_equal(n, SAMPLES);
	clear_samples();
	assert_int_equal(decode_samples(&decode, &n), 0);
	assert_int_equal(n, 0);
	end_samples();
}

static void a_buffer_that_overflowed_stays_so(void **state)
{
	CUpti_PmSampling_DecodeData_Params decode;
	size_t n;

	(void)state;
	start_samples();
	for (int i = 0; i < 10; i++)
		run_for(100);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(decode_samples(&decode, &n), CUPTI_ERROR_OUT_OF_MEMORY);
		assert_int_equal(decode.overflow, 1);
		assert_int_equal(n, 0);
	}
	end_samples();
}

static void ending_twice_is_a_violation(void **state)
{
	PARAMETERS(CUpti_Profiler_DeInitialize_Params, deinitialize, .pPriv = NULL);
	int before = n_violations();

	(void)state;
	assert_int_equal(cuptiProfilerDeInitialize(&deinitialize), 0);
	assert_int_equal(n_violations(), before);
	cuptiProfilerDeInitialize(&deinitialize);
	assert_int_equal(n_violations(), before + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_unknown_name_refuses_all),
		cmocka_unit_test(metrics_take_as_many_passes_as_the_worst_of_them),
		cmocka_unit_test(kernels_are_counted_between_start_and_stop),
		cmocka_unit_test(each_kernel_of_a_graph_is_a_range),
		cmocka_unit_test(a_collective_that_is_counted_is_a_violation),
		cmocka_unit_test(counting_while_a_stream_is_captured_is_a_violation),
		cmocka_unit_test(samples_beyond_the_image_are_lost),
		cmocka_unit_test(a_buffer_that_overflowed_stays_so),
		cmocka_unit_test(ending_twice_is_a_violation),
	};

	return cmocka_run_group_tests(tests, begin, end);
}

#endif
