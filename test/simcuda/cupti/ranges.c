/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The simulated range profiler: every kernel of a context is a range of its own, and runs alone. */
#include "test/simcuda/cupti/profiler.h"

#if HAS_COUNTERS
#include <stdlib.h>
#include <string.h>

#include "test/simcuda/engine/device.h"
#include "test/simcuda/engine/lock.h"
#include "test/simcuda/engine/log/log.h"

enum { RANGES_MAGIC = 0x51a6e };

struct ranges {
	uint32_t magic;
	struct sim_context *context;
	struct config_image config;
	bool is_configured, is_started;
	uint8_t *image;
	size_t image_bytes, n_most;
	struct counted *counted; /* since the start, n of them, the first n_most are kept */
	size_t n;
	struct ranges *next;
};

static struct ranges *all; /* under the engine's lock */

static struct ranges *ranges_of(CUpti_RangeProfiler_Object *object)
{
	struct ranges *ranges = (struct ranges *)object;

	return ranges && ranges->magic == RANGES_MAGIC ? ranges : NULL;
}

CUptiResult do_cuptiRangeProfilerEnable(CUpti_RangeProfiler_Enable_Params *p)
{
	CUptiResult result = profiler_check();
	struct ranges *ranges;

	if (result)
		return result;
	if (!IS_KNOWN(p, CUpti_RangeProfiler_Enable_Params, pRangeProfilerObject) ||
	    !sim_context_is_live((struct sim_context *)p->ctx))
		return CUPTI_ERROR_INVALID_PARAMETER;
	ranges = calloc(1, sizeof(*ranges));
	*ranges = (struct ranges){
		.magic = RANGES_MAGIC, .context = (struct sim_context *)p->ctx, .next = all};
	sim_lock();
	all = ranges;
	sim_unlock();
	p->pRangeProfilerObject = (CUpti_RangeProfiler_Object *)ranges;
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiRangeProfilerDisable(CUpti_RangeProfiler_Disable_Params *p)
{
	struct ranges *ranges = p ? ranges_of(p->pRangeProfilerObject) : NULL;

	if (!ranges)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!sim_context_is_live(ranges->context))
		sim_violation("cuptiRangeProfilerDisable of a context that is gone");
	sim_lock();
	for (struct ranges **at = &all; *at; at = &(*at)->next)
		if (*at == ranges) {
			*at = ranges->next;
			break;
		}
	sim_unlock();
	ranges->magic = 0;
	free(ranges->counted);
	free(ranges);
	return CUPTI_SUCCESS;
}

CUptiResult
do_cuptiRangeProfilerGetCounterDataSize(CUpti_RangeProfiler_GetCounterDataSize_Params *p)
{
	if (!p || !ranges_of(p->pRangeProfilerObject) || !p->numMetrics || !p->maxNumOfRanges ||
	    p->maxNumRangeTreeNodes < p->maxNumOfRanges)
		return CUPTI_ERROR_INVALID_PARAMETER;
	p->counterDataSize = data_image_bytes(p->maxNumOfRanges);
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiRangeProfilerCounterDataImageInitialize(
	CUpti_RangeProfiler_CounterDataImage_Initialize_Params *p)
{
	if (!p || !ranges_of(p->pRangeProfilerObject))
		return CUPTI_ERROR_INVALID_PARAMETER;
	return data_image_initialise(p->pCounterData, p->counterDataSize);
}

/* Kernels as ranges, replayed by CUPTI: nothing else is simulated. */
CUptiResult do_cuptiRangeProfilerSetConfig(CUpti_RangeProfiler_SetConfig_Params *p)
{
	struct ranges *ranges = p ? ranges_of(p->pRangeProfilerObject) : NULL;
	const struct config_image *config =
		p ? config_of(p->pConfig, p->configSize, CUPTI_PROFILER_TYPE_RANGE_PROFILER) : NULL;
	const struct data_image *image =
		p ? data_image_of(p->pCounterDataImage, p->counterDataImageSize) : NULL;

	if (!ranges || !config || !image ||
	    !IS_KNOWN(p, CUpti_RangeProfiler_SetConfig_Params, targetNestingLevel))
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (p->range != CUPTI_AutoRange || p->replayMode != CUPTI_KernelReplay ||
	    p->numNestingLevels != 1 || config->n_passes > MAX_PASSES)
		return CUPTI_ERROR_NOT_SUPPORTED;
	ranges->config = *config;
	ranges->image = p->pCounterDataImage;
	ranges->image_bytes = p->counterDataImageSize;
	ranges->n_most = p->maxRangesPerPass;
	ranges->counted = realloc(ranges->counted, ranges->n_most * sizeof(*ranges->counted));
	ranges->is_configured = true;
	return CUPTI_SUCCESS;
}

/* No stream of the context may be captured: what waits for the device breaks the capture. */
static void check_captures(const struct sim_context *context, const char *what)
{
	bool is_capturing = false;

	sim_lock();
	for (const struct sim_stream *stream = context->streams; stream; stream = stream->next)
		is_capturing |= stream->end.capture != NULL;
	sim_unlock();
	if (is_capturing)
		sim_violation("the range profiler was %s while a stream was captured", what);
}

CUptiResult do_cuptiRangeProfilerStart(CUpti_RangeProfiler_Start_Params *p)
{
	struct ranges *ranges = p ? ranges_of(p->pRangeProfilerObject) : NULL;

	if (!ranges)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!ranges->is_configured || ranges->is_started)
		return CUPTI_ERROR_INVALID_OPERATION;
	check_captures(ranges->context, "started");
	sim_lock();
	ranges->is_started = true;
	sim_unlock();
	sim_context_wait(ranges->context);
	/* What was launched before is waited for, and not counted. */
	sim_lock();
	ranges->n = 0;
	sim_unlock();
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiRangeProfilerStop(CUpti_RangeProfiler_Stop_Params *p)
{
	struct ranges *ranges = p ? ranges_of(p->pRangeProfilerObject) : NULL;

	if (!ranges)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!ranges->is_started)
		return CUPTI_ERROR_INVALID_OPERATION;
	check_captures(ranges->context, "stopped");
	sim_context_wait(ranges->context);
	sim_lock();
	ranges->is_started = false;
	sim_unlock();
	p->isAllPassSubmitted = 1;
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiRangeProfilerDecodeData(CUpti_RangeProfiler_DecodeData_Params *p)
{
	struct ranges *ranges = p ? ranges_of(p->pRangeProfilerObject) : NULL;
	struct data_image *image;

	if (!ranges)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!ranges->is_configured || ranges->is_started)
		return CUPTI_ERROR_INVALID_OPERATION;
	image = data_image_of(ranges->image, ranges->image_bytes);
	p->numOfRangeDropped = 0;
	for (size_t i = 0; i < ranges->n; i++) {
		if (i < ranges->n_most && image->n < image->n_most)
			image->items[image->n++].counted = ranges->counted[i];
		else
			p->numOfRangeDropped++;
	}
	ranges->n = 0;
	return CUPTI_SUCCESS;
}

CUptiResult
do_cuptiRangeProfilerGetCounterDataInfo(CUpti_RangeProfiler_GetCounterDataInfo_Params *p)
{
	const struct data_image *image =
		p ? data_image_of(p->pCounterDataImage, p->counterDataImageSize) : NULL;

	if (!image)
		return CUPTI_ERROR_INVALID_PARAMETER;
	p->numTotalRanges = image->n;
	return CUPTI_SUCCESS;
}

/*
 * ---- reports from the engine -------------------------------------------------------------------
 */

/* On a device that waits for one kernel alone, what needs a second launch never ends. */
static bool would_hang(const struct sim_op *op)
{
	return op->work.kind == SIM_KERNEL && strstr(op->work.kernel.name, "nccl");
}

static void count(struct ranges *ranges, const struct sim_op *op)
{
	if (would_hang(op))
		sim_violation(
			"a collective ran while kernels were counted one by one: a real one may never end");
	if (op->work.kind != SIM_KERNEL)
		return;
	if (ranges->n < ranges->n_most)
		ranges->counted[ranges->n] =
			(struct counted){op->end_ns - op->start_ns, threads_of(&op->work.kernel)};
	ranges->n++;
}

void ranges_op_ends(const struct sim_op *op)
{
	for (struct ranges *ranges = all; ranges; ranges = ranges->next)
		if (ranges->is_started && ranges->context == op->context)
			count(ranges, op);
}

void ranges_launched(void)
{
	struct sim_context *busy = NULL;

	if (!all)
		return;
	sim_lock();
	for (struct ranges *ranges = all; ranges; ranges = ranges->next)
		if (ranges->is_started)
			busy = ranges->context;
	sim_unlock();
	if (busy)
		sim_context_wait(busy);
}
#endif
