/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* shim/cuda/cupti_profiler.h against CUPTI's own headers, if these are C (since CUDA 13.1). */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>

#if __has_include(<cupti_version.h>)
#include <cupti_version.h>
#endif

#if !defined(CUPTI_API_VERSION) || CUPTI_API_VERSION < 130100
int main(void)
{
	puts("there are no headers of CUPTI 13.1 or later (PyPI's wheels below build/venv, or CUDA_HOME)");
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

#include "shim/cuda/cupti_profiler.h"

/*
 * The same place and size; a struct's last field ends where ours does, or theirs has grown since.
 */
#define SAME(ours, our_field, Theirs, their_field)                         \
	_Static_assert(offsetof(struct cupti_##ours, our_field) ==         \
			       offsetof(CUpti_##Theirs, their_field),      \
		       #Theirs "." #their_field);                          \
	_Static_assert(sizeof(((struct cupti_##ours *)0)->our_field) ==    \
			       sizeof(((CUpti_##Theirs *)0)->their_field), \
		       "size of " #Theirs "." #their_field);
#define STRUCT(ours, Theirs)                    \
	SAME(ours, n_bytes, Theirs, structSize) \
	SAME(ours, reserved, Theirs, pPriv)

STRUCT(profiler, Profiler_Initialize_Params)
STRUCT(profiler, Profiler_DeInitialize_Params)

STRUCT(chip, Device_GetChipName_Params)
SAME(chip, device, Device_GetChipName_Params, deviceIndex)
SAME(chip, name, Device_GetChipName_Params, pChipName)

STRUCT(context_availability, Profiler_GetCounterAvailability_Params)
SAME(context_availability, context, Profiler_GetCounterAvailability_Params, ctx)
SAME(context_availability, image_bytes, Profiler_GetCounterAvailability_Params,
     counterAvailabilityImageSize)
SAME(context_availability, image, Profiler_GetCounterAvailability_Params, pCounterAvailabilityImage)

STRUCT(device_availability, PmSampling_GetCounterAvailability_Params)
SAME(device_availability, device, PmSampling_GetCounterAvailability_Params, deviceIndex)
SAME(device_availability, image_bytes, PmSampling_GetCounterAvailability_Params,
     counterAvailabilityImageSize)
SAME(device_availability, image, PmSampling_GetCounterAvailability_Params,
     pCounterAvailabilityImage)

STRUCT(host_create, Profiler_Host_Initialize_Params)
SAME(host_create, type, Profiler_Host_Initialize_Params, profilerType)
SAME(host_create, chip, Profiler_Host_Initialize_Params, pChipName)
SAME(host_create, availability, Profiler_Host_Initialize_Params, pCounterAvailabilityImage)
SAME(host_create, host, Profiler_Host_Initialize_Params, pHostObject)

STRUCT(host, Profiler_Host_Deinitialize_Params)
SAME(host, host, Profiler_Host_Deinitialize_Params, pHostObject)

STRUCT(host_metric, Profiler_Host_GetMetricProperties_Params)
SAME(host_metric, host, Profiler_Host_GetMetricProperties_Params, pHostObject)
SAME(host_metric, name, Profiler_Host_GetMetricProperties_Params, pMetricName)
SAME(host_metric, description, Profiler_Host_GetMetricProperties_Params, pDescription)
SAME(host_metric, hardware_unit, Profiler_Host_GetMetricProperties_Params, pHwUnit)
SAME(host_metric, unit, Profiler_Host_GetMetricProperties_Params, pDimUnit)
SAME(host_metric, type, Profiler_Host_GetMetricProperties_Params, metricType)

STRUCT(host_metrics, Profiler_Host_ConfigAddMetrics_Params)
SAME(host_metrics, host, Profiler_Host_ConfigAddMetrics_Params, pHostObject)
SAME(host_metrics, names, Profiler_Host_ConfigAddMetrics_Params, ppMetricNames)
SAME(host_metrics, n, Profiler_Host_ConfigAddMetrics_Params, numMetrics)

STRUCT(host_config_size, Profiler_Host_GetConfigImageSize_Params)
SAME(host_config_size, host, Profiler_Host_GetConfigImageSize_Params, pHostObject)
SAME(host_config_size, image_bytes, Profiler_Host_GetConfigImageSize_Params, configImageSize)

STRUCT(host_config, Profiler_Host_GetConfigImage_Params)
SAME(host_config, host, Profiler_Host_GetConfigImage_Params, pHostObject)
SAME(host_config, image_bytes, Profiler_Host_GetConfigImage_Params, configImageSize)
SAME(host_config, image, Profiler_Host_GetConfigImage_Params, pConfigImage)

STRUCT(host_passes, Profiler_Host_GetNumOfPasses_Params)
SAME(host_passes, image_bytes, Profiler_Host_GetNumOfPasses_Params, configImageSize)
SAME(host_passes, image, Profiler_Host_GetNumOfPasses_Params, pConfigImage)
SAME(host_passes, n_passes, Profiler_Host_GetNumOfPasses_Params, numOfPasses)

STRUCT(host_values, Profiler_Host_EvaluateToGpuValues_Params)
SAME(host_values, host, Profiler_Host_EvaluateToGpuValues_Params, pHostObject)
SAME(host_values, image, Profiler_Host_EvaluateToGpuValues_Params, pCounterDataImage)
SAME(host_values, image_bytes, Profiler_Host_EvaluateToGpuValues_Params, counterDataImageSize)
SAME(host_values, range, Profiler_Host_EvaluateToGpuValues_Params, rangeIndex)
SAME(host_values, names, Profiler_Host_EvaluateToGpuValues_Params, ppMetricNames)
SAME(host_values, n, Profiler_Host_EvaluateToGpuValues_Params, numMetrics)
SAME(host_values, values, Profiler_Host_EvaluateToGpuValues_Params, pMetricValues)

STRUCT(range_enable, RangeProfiler_Enable_Params)
SAME(range_enable, context, RangeProfiler_Enable_Params, ctx)
SAME(range_enable, object, RangeProfiler_Enable_Params, pRangeProfilerObject)

STRUCT(range, RangeProfiler_Disable_Params)
SAME(range, object, RangeProfiler_Disable_Params, pRangeProfilerObject)
STRUCT(range, RangeProfiler_Start_Params)
SAME(range, object, RangeProfiler_Start_Params, pRangeProfilerObject)

STRUCT(range_image_size, RangeProfiler_GetCounterDataSize_Params)
SAME(range_image_size, object, RangeProfiler_GetCounterDataSize_Params, pRangeProfilerObject)
SAME(range_image_size, names, RangeProfiler_GetCounterDataSize_Params, pMetricNames)
SAME(range_image_size, n, RangeProfiler_GetCounterDataSize_Params, numMetrics)
SAME(range_image_size, n_ranges_max, RangeProfiler_GetCounterDataSize_Params, maxNumOfRanges)
SAME(range_image_size, n_nodes_max, RangeProfiler_GetCounterDataSize_Params, maxNumRangeTreeNodes)
SAME(range_image_size, image_bytes, RangeProfiler_GetCounterDataSize_Params, counterDataSize)

STRUCT(range_image, RangeProfiler_CounterDataImage_Initialize_Params)
SAME(range_image, object, RangeProfiler_CounterDataImage_Initialize_Params, pRangeProfilerObject)
SAME(range_image, image_bytes, RangeProfiler_CounterDataImage_Initialize_Params, counterDataSize)
SAME(range_image, image, RangeProfiler_CounterDataImage_Initialize_Params, pCounterData)

STRUCT(range_config, RangeProfiler_SetConfig_Params)
SAME(range_config, object, RangeProfiler_SetConfig_Params, pRangeProfilerObject)
SAME(range_config, config_bytes, RangeProfiler_SetConfig_Params, configSize)
SAME(range_config, config, RangeProfiler_SetConfig_Params, pConfig)
SAME(range_config, image_bytes, RangeProfiler_SetConfig_Params, counterDataImageSize)
SAME(range_config, image, RangeProfiler_SetConfig_Params, pCounterDataImage)
SAME(range_config, range, RangeProfiler_SetConfig_Params, range)
SAME(range_config, replay, RangeProfiler_SetConfig_Params, replayMode)
SAME(range_config, n_ranges_max, RangeProfiler_SetConfig_Params, maxRangesPerPass)
SAME(range_config, n_levels, RangeProfiler_SetConfig_Params, numNestingLevels)
SAME(range_config, first_level, RangeProfiler_SetConfig_Params, minNestingLevel)
SAME(range_config, pass, RangeProfiler_SetConfig_Params, passIndex)
SAME(range_config, target_level, RangeProfiler_SetConfig_Params, targetNestingLevel)

STRUCT(range_stop, RangeProfiler_Stop_Params)
SAME(range_stop, object, RangeProfiler_Stop_Params, pRangeProfilerObject)
SAME(range_stop, pass, RangeProfiler_Stop_Params, passIndex)
SAME(range_stop, level, RangeProfiler_Stop_Params, targetNestingLevel)
SAME(range_stop, is_complete, RangeProfiler_Stop_Params, isAllPassSubmitted)

STRUCT(range_decode, RangeProfiler_DecodeData_Params)
SAME(range_decode, object, RangeProfiler_DecodeData_Params, pRangeProfilerObject)
SAME(range_decode, n_dropped, RangeProfiler_DecodeData_Params, numOfRangeDropped)

STRUCT(range_info, RangeProfiler_GetCounterDataInfo_Params)
SAME(range_info, image, RangeProfiler_GetCounterDataInfo_Params, pCounterDataImage)
SAME(range_info, image_bytes, RangeProfiler_GetCounterDataInfo_Params, counterDataImageSize)
SAME(range_info, n_ranges, RangeProfiler_GetCounterDataInfo_Params, numTotalRanges)

STRUCT(sampling_enable, PmSampling_Enable_Params)
SAME(sampling_enable, device, PmSampling_Enable_Params, deviceIndex)
SAME(sampling_enable, object, PmSampling_Enable_Params, pPmSamplingObject)

STRUCT(sampling, PmSampling_Disable_Params)
SAME(sampling, object, PmSampling_Disable_Params, pPmSamplingObject)
STRUCT(sampling, PmSampling_Start_Params)
SAME(sampling, object, PmSampling_Start_Params, pPmSamplingObject)
STRUCT(sampling, PmSampling_Stop_Params)
SAME(sampling, object, PmSampling_Stop_Params, pPmSamplingObject)

STRUCT(sampling_config, PmSampling_SetConfig_Params)
SAME(sampling_config, object, PmSampling_SetConfig_Params, pPmSamplingObject)
SAME(sampling_config, config_bytes, PmSampling_SetConfig_Params, configSize)
SAME(sampling_config, config, PmSampling_SetConfig_Params, pConfig)
SAME(sampling_config, buffer_bytes, PmSampling_SetConfig_Params, hardwareBufferSize)
SAME(sampling_config, interval, PmSampling_SetConfig_Params, samplingInterval)
SAME(sampling_config, trigger, PmSampling_SetConfig_Params, triggerMode)
SAME(sampling_config, append, PmSampling_SetConfig_Params, hwBufferAppendMode)

STRUCT(sampling_image_size, PmSampling_GetCounterDataSize_Params)
SAME(sampling_image_size, object, PmSampling_GetCounterDataSize_Params, pPmSamplingObject)
SAME(sampling_image_size, names, PmSampling_GetCounterDataSize_Params, pMetricNames)
SAME(sampling_image_size, n, PmSampling_GetCounterDataSize_Params, numMetrics)
SAME(sampling_image_size, n_samples_max, PmSampling_GetCounterDataSize_Params, maxSamples)
SAME(sampling_image_size, image_bytes, PmSampling_GetCounterDataSize_Params, counterDataSize)

STRUCT(sampling_image, PmSampling_CounterDataImage_Initialize_Params)
SAME(sampling_image, object, PmSampling_CounterDataImage_Initialize_Params, pPmSamplingObject)
SAME(sampling_image, image_bytes, PmSampling_CounterDataImage_Initialize_Params, counterDataSize)
SAME(sampling_image, image, PmSampling_CounterDataImage_Initialize_Params, pCounterData)

STRUCT(sampling_decode, PmSampling_DecodeData_Params)
SAME(sampling_decode, object, PmSampling_DecodeData_Params, pPmSamplingObject)
SAME(sampling_decode, image, PmSampling_DecodeData_Params, pCounterDataImage)
SAME(sampling_decode, image_bytes, PmSampling_DecodeData_Params, counterDataImageSize)
SAME(sampling_decode, stopped_by, PmSampling_DecodeData_Params, decodeStopReason)
SAME(sampling_decode, has_overflowed, PmSampling_DecodeData_Params, overflow)

STRUCT(sampling_info, PmSampling_GetCounterDataInfo_Params)
SAME(sampling_info, image, PmSampling_GetCounterDataInfo_Params, pCounterDataImage)
SAME(sampling_info, image_bytes, PmSampling_GetCounterDataInfo_Params, counterDataImageSize)
SAME(sampling_info, n_samples, PmSampling_GetCounterDataInfo_Params, numTotalSamples)
SAME(sampling_info, n_populated, PmSampling_GetCounterDataInfo_Params, numPopulatedSamples)
SAME(sampling_info, n_completed, PmSampling_GetCounterDataInfo_Params, numCompletedSamples)

STRUCT(sampling_times, PmSampling_CounterData_GetSampleInfo_Params)
SAME(sampling_times, object, PmSampling_CounterData_GetSampleInfo_Params, pPmSamplingObject)
SAME(sampling_times, image, PmSampling_CounterData_GetSampleInfo_Params, pCounterDataImage)
SAME(sampling_times, image_bytes, PmSampling_CounterData_GetSampleInfo_Params, counterDataImageSize)
SAME(sampling_times, sample, PmSampling_CounterData_GetSampleInfo_Params, sampleIndex)
SAME(sampling_times, start, PmSampling_CounterData_GetSampleInfo_Params, startTimestamp)
SAME(sampling_times, end, PmSampling_CounterData_GetSampleInfo_Params, endTimestamp)

/* What a launch's callback has. */
#define LAUNCH(ours, our_field, Theirs, their_field)                                      \
	_Static_assert(offsetof(struct ours, our_field) == offsetof(Theirs, their_field), \
		       #Theirs "." #their_field);

LAUNCH(cupti_launch, function, cuLaunchKernel_params, f)
LAUNCH(cupti_launch, grid, cuLaunchKernel_params, gridDimX)
LAUNCH(cupti_launch, block, cuLaunchKernel_params, blockDimX)
LAUNCH(cupti_launch, shared_bytes, cuLaunchKernel_params, sharedMemBytes)
LAUNCH(cupti_launch, grid, cuLaunchCooperativeKernel_params, gridDimX)
LAUNCH(cupti_launch, block, cuLaunchCooperativeKernel_params, blockDimX)
LAUNCH(cupti_launch, shared_bytes, cuLaunchCooperativeKernel_params, sharedMemBytes)
LAUNCH(cupti_launch_config, grid, CUlaunchConfig, gridDimX)
LAUNCH(cupti_launch_config, block, CUlaunchConfig, blockDimX)
LAUNCH(cupti_launch_config, shared_bytes, CUlaunchConfig, sharedMemBytes)
_Static_assert(offsetof(cuLaunchKernelEx_params, config) == 0,
	       "it begins with a pointer to the configuration");

LAUNCH(cupti_resource, context, CUpti_ResourceData, context)
LAUNCH(cupti_call, context, CUpti_CallbackData, context)
LAUNCH(cupti_call, symbol, CUpti_CallbackData, symbolName)
LAUNCH(cupti_call, parameters, CUpti_CallbackData, functionParams)

static void numbers_are_those_of_the_headers(void **state)
{
	(void)state;
	assert_int_equal(CUPTI_PROFILER_OF_RANGES, CUPTI_PROFILER_TYPE_RANGE_PROFILER);
	assert_int_equal(CUPTI_PROFILER_OF_SAMPLES, CUPTI_PROFILER_TYPE_PM_SAMPLING);
	assert_int_equal(CUPTI_RANGE_IS_KERNEL, CUPTI_AutoRange);
	assert_int_equal(CUPTI_REPLAY_OF_KERNELS, CUPTI_KernelReplay);
	assert_int_equal(CUPTI_EVERY_CLOCKS, CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL);
	assert_int_equal(CUPTI_EVERY_NS, CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL);
	assert_int_equal(CUPTI_KEEP_LATEST,
			 CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_LATEST);
	assert_int_equal(CUPTI_DOMAIN_RESOURCE, CUPTI_CB_DOMAIN_RESOURCE);
	assert_int_equal(CUPTI_CONTEXT_ENDS, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
	assert_int_equal(CUPTI_INVALID_PARAMETER, CUPTI_ERROR_INVALID_PARAMETER);
	assert_int_equal(CUPTI_OUT_OF_MEMORY, CUPTI_ERROR_OUT_OF_MEMORY);
	assert_int_equal(CUPTI_HARDWARE_BUSY, CUPTI_ERROR_HARDWARE_BUSY);
	assert_int_equal(CUPTI_NOT_SUPPORTED, CUPTI_ERROR_NOT_SUPPORTED);
	assert_int_equal(CUPTI_VIRTUALIZED, CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED);
	assert_int_equal(CUPTI_INSUFFICIENT_PRIVILEGES, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
	assert_int_equal(CUPTI_OLD_PROFILER, CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED);
	assert_int_equal(CUPTI_VIRTUALIZED_PRIVILEGES,
			 CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES);
	assert_int_equal(CUPTI_CONFIDENTIAL, CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED);
	assert_int_equal(CUPTI_MIG, CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED);
	assert_int_equal(CUPTI_WSL, CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED);
	assert_int_equal(CUPTI_UNKNOWN_CHIP, CUPTI_ERROR_INVALID_CHIP_NAME);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_those_of_the_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
