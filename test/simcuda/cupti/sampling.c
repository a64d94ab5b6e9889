/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Simulated PM sampling: what kernels did in intervals of a device's time. Times are of a clock of
 * its own, CLOCK_AHEAD_NS before the device's.
 */
#include "test/simcuda/cupti/profiler.h"

#if HAS_COUNTERS
#include <stdlib.h>
#include <string.h>

#include "test/simcuda/engine/clock.h"
#include "test/simcuda/engine/config.h"
#include "test/simcuda/engine/device.h"
#include "test/simcuda/engine/lock.h"
#include "test/simcuda/engine/log/log.h"

enum { SAMPLING_MAGIC = 0x5a3b1e, BYTES_A_SAMPLE = 8192, MIN_INTERVAL_NS = 1000 };
#define STILL_RUNNING UINT64_MAX /* the end of what does */
#define CLOCK_AHEAD_NS UINT64_C(1000000000000000)

struct kernel_span {
	uint64_t start_ns, end_ns, threads;
};

struct sampling {
	uint32_t magic;
	struct sim_device *device;
	struct config_image config;
	bool is_configured, is_started, has_overflowed;
	uint64_t interval_ns, buffer_bytes, next_ns; /* where the next sample begins */
	struct kernel_span *spans; /* that reach into samples to come */
	size_t n_spans, n_room;
};

static struct sampling *by_device[SIM_MAX_DEVICES]; /* under the engine's lock */

static struct sampling *sampling_of(CUpti_PmSampling_Object *object)
{
	struct sampling *sampling = (struct sampling *)object;

	return sampling && sampling->magic == SAMPLING_MAGIC ? sampling : NULL;
}

CUptiResult do_cuptiPmSamplingEnable(CUpti_PmSampling_Enable_Params *p)
{
	CUptiResult result = profiler_check();
	struct sampling *sampling;

	if (result)
		return result;
	if (!IS_KNOWN(p, CUpti_PmSampling_Enable_Params, pPmSamplingObject) ||
	    !sim_device((int)p->deviceIndex))
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (by_device[p->deviceIndex])
		return CUPTI_ERROR_INVALID_OPERATION;
	sampling = calloc(1, sizeof(*sampling));
	sampling->magic = SAMPLING_MAGIC;
	sampling->device = sim_device((int)p->deviceIndex);
	sim_lock();
	by_device[p->deviceIndex] = sampling;
	sim_unlock();
	/* Kernels are seen by the tracer. */
	cupti_attach();
	p->pPmSamplingObject = (CUpti_PmSampling_Object *)sampling;
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiPmSamplingDisable(CUpti_PmSampling_Disable_Params *p)
{
	struct sampling *sampling = p ? sampling_of(p->pPmSamplingObject) : NULL;

	if (!sampling)
		return CUPTI_ERROR_INVALID_PARAMETER;
	sim_lock();
	by_device[sampling->device->ordinal] = NULL;
	sim_unlock();
	sampling->magic = 0;
	free(sampling->spans);
	free(sampling);
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiPmSamplingSetConfig(CUpti_PmSampling_SetConfig_Params *p)
{
	struct sampling *sampling = p ? sampling_of(p->pPmSamplingObject) : NULL;
	const struct config_image *config =
		p ? config_of(p->pConfig, p->configSize, CUPTI_PROFILER_TYPE_PM_SAMPLING) : NULL;

	if (!sampling || !config || !IS_KNOWN(p, CUpti_PmSampling_SetConfig_Params, triggerMode) ||
	    p->samplingInterval < MIN_INTERVAL_NS || p->hardwareBufferSize < BYTES_A_SAMPLE)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (config->n_passes != 1)
		return CUPTI_ERROR_NOT_SUPPORTED;
	sampling->config = *config;
	sampling->interval_ns = p->samplingInterval;
	sampling->buffer_bytes = p->hardwareBufferSize;
	sampling->is_configured = true;
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiPmSamplingGetCounterDataSize(CUpti_PmSampling_GetCounterDataSize_Params *p)
{
	if (!p || !sampling_of(p->pPmSamplingObject) || !p->numMetrics || !p->maxSamples)
		return CUPTI_ERROR_INVALID_PARAMETER;
	p->counterDataSize = data_image_bytes(p->maxSamples);
	return CUPTI_SUCCESS;
}

CUptiResult
do_cuptiPmSamplingCounterDataImageInitialize(CUpti_PmSampling_CounterDataImage_Initialize_Params *p)
{
	if (!p || !sampling_of(p->pPmSamplingObject))
		return CUPTI_ERROR_INVALID_PARAMETER;
	return data_image_initialise(p->pCounterData, p->counterDataSize);
}

CUptiResult do_cuptiPmSamplingStart(CUpti_PmSampling_Start_Params *p)
{
	struct sampling *sampling = p ? sampling_of(p->pPmSamplingObject) : NULL;

	if (!sampling)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!sampling->is_configured || sampling->is_started)
		return CUPTI_ERROR_INVALID_OPERATION;
	sim_lock();
	sampling->next_ns = sim_now();
	sampling->is_started = true;
	sim_unlock();
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiPmSamplingStop(CUpti_PmSampling_Stop_Params *p)
{
	struct sampling *sampling = p ? sampling_of(p->pPmSamplingObject) : NULL;

	if (!sampling)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!sampling->is_started)
		return CUPTI_ERROR_INVALID_OPERATION;
	sim_lock();
	sim_run();
	sampling->is_started = false;
	sim_unlock();
	return CUPTI_SUCCESS;
}

/* ---- samples --------------------------------------------------------------------------------- */

static void add_span(struct sampling *sampling, const struct kernel_span *span)
{
	if (sampling->n_spans == sampling->n_room) {
		sampling->n_room = sampling->n_room ? 2 * sampling->n_room : 256;
		sampling->spans =
			realloc(sampling->spans, sampling->n_room * sizeof(*sampling->spans));
	}
	sampling->spans[sampling->n_spans++] = *span;
}

void sampling_op_ends(const struct sim_op *op)
{
	struct sampling *sampling = by_device[op->device->ordinal];

	if (sampling && op->work.kind == SIM_KERNEL && op->end_ns >= sampling->next_ns)
		add_span(sampling, &(struct kernel_span){op->start_ns, op->end_ns,
							 threads_of(&op->work.kernel)});
}

static struct sampling *current; /* running kernels are looked for; under the lock */

static void see_running(struct sim_op *op)
{
	if (op->device == current->device && op->work.kind == SIM_KERNEL)
		add_span(current, &(struct kernel_span){op->start_ns, STILL_RUNNING,
							threads_of(&op->work.kernel)});
}

static struct counted count(const struct sampling *sampling, uint64_t begin_ns, uint64_t end_ns)
{
	struct counted counted = {0};

	for (size_t i = 0; i < sampling->n_spans; i++) {
		const struct kernel_span *span = &sampling->spans[i];
		uint64_t from = span->start_ns > begin_ns ? span->start_ns : begin_ns;
		uint64_t to = span->end_ns < end_ns ? span->end_ns : end_ns;

		counted.ns += to > from ? to - from : 0;
		counted.threads +=
			span->start_ns >= begin_ns && span->start_ns < end_ns ? span->threads : 0;
	}
	return counted;
}

static void forget_old(struct sampling *sampling)
{
	size_t n = 0;

	for (size_t i = 0; i < sampling->n_spans; i++)
		if (sampling->spans[i].end_ns >= sampling->next_ns &&
		    sampling->spans[i].end_ns != STILL_RUNNING)
			sampling->spans[n++] = sampling->spans[i];
	sampling->n_spans = n;
}

static void fill(struct sampling *sampling, struct data_image *image, uint64_t until_ns)
{
	while (image->n < image->n_most && sampling->next_ns + sampling->interval_ns <= until_ns) {
		uint64_t begin_ns = sampling->next_ns, end_ns = begin_ns + sampling->interval_ns;

		image->items[image->n].counted = count(sampling, begin_ns, end_ns);
		image->items[image->n].start = begin_ns + CLOCK_AHEAD_NS;
		image->items[image->n].end = end_ns + CLOCK_AHEAD_NS;
		image->n++;
		sampling->next_ns = end_ns;
	}
	forget_old(sampling);
}

CUptiResult do_cuptiPmSamplingDecodeData(CUpti_PmSampling_DecodeData_Params *p)
{
	struct sampling *sampling = p ? sampling_of(p->pPmSamplingObject) : NULL;
	struct data_image *image =
		p ? data_image_of(p->pCounterDataImage, p->counterDataImageSize) : NULL;
	uint64_t until_ns;

	if (!sampling || !image)
		return CUPTI_ERROR_INVALID_PARAMETER;
	sim_lock();
	sim_run();
	until_ns = sim_now();
	if ((until_ns - sampling->next_ns) / sampling->interval_ns * BYTES_A_SAMPLE >
	    sampling->buffer_bytes)
		sampling->has_overflowed = true;
	current = sampling;
	sim_each_running(see_running);
	p->overflow = sampling->has_overflowed;
	p->decodeStopReason = CUPTI_PM_SAMPLING_DECODE_STOP_REASON_END_OF_RECORDS;
	if (!sampling->has_overflowed)
		fill(sampling, image, until_ns);
	/* What had no room is lost, as the real one loses it. */
	if (sampling->next_ns + sampling->interval_ns <= until_ns && !sampling->has_overflowed) {
		p->decodeStopReason = CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL;
		sampling->next_ns += (until_ns - sampling->next_ns) / sampling->interval_ns *
				     sampling->interval_ns;
	}
	sim_unlock();
	return sampling->has_overflowed ? CUPTI_ERROR_OUT_OF_MEMORY : CUPTI_SUCCESS;
}

CUptiResult do_cuptiPmSamplingGetCounterDataInfo(CUpti_PmSampling_GetCounterDataInfo_Params *p)
{
	const struct data_image *image =
		p ? data_image_of(p->pCounterDataImage, p->counterDataImageSize) : NULL;

	if (!image)
		return CUPTI_ERROR_INVALID_PARAMETER;
	p->numTotalSamples = image->n_most;
	p->numPopulatedSamples = p->numCompletedSamples = image->n;
	return CUPTI_SUCCESS;
}

CUptiResult
do_cuptiPmSamplingCounterDataGetSampleInfo(CUpti_PmSampling_CounterData_GetSampleInfo_Params *p)
{
	const struct data_image *image =
		p ? data_image_of(p->pCounterDataImage, p->counterDataImageSize) : NULL;

	if (!image || p->sampleIndex >= image->n)
		return CUPTI_ERROR_INVALID_PARAMETER;
	p->startTimestamp = image->items[p->sampleIndex].start;
	p->endTimestamp = image->items[p->sampleIndex].end;
	return CUPTI_SUCCESS;
}
#endif
