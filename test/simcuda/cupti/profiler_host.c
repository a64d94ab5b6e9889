/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Metrics of the simulated chip: their names, how many passes they take together, and their values.
 */
#include "test/simcuda/cupti/profiler.h"

#if HAS_COUNTERS
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test/simcuda/engine/config.h"
#include "test/simcuda/engine/log/log.h"

static const struct metric {
	const char *name, *unit;
	uint32_t passes[2]; /* by CUpti_ProfilerType */
	uint64_t per_ns, per_thread, modulus;
} metrics[] = {
#define METRIC(name, unit, range, sampling, per_ns, per_thread, modulus) \
	{name, unit, {range, sampling}, per_ns, per_thread, modulus},
#include "test/simcuda/cupti/metrics.def"
#undef METRIC
};

enum { N_METRICS = sizeof(metrics) / sizeof(metrics[0]), HOST_MAGIC = 0x51057 };
_Static_assert((int)N_METRICS <= (int)MAX_METRICS, "an image has room for all");

struct host {
	uint32_t magic;
	struct config_image config;
};

static _Atomic int n_initialised;

CUptiResult profiler_check(void)
{
	CUptiResult result = cupti_check();

	return result ? result : n_initialised ? CUPTI_SUCCESS : CUPTI_ERROR_NOT_INITIALIZED;
}

CUptiResult do_cuptiProfilerInitialize(CUpti_Profiler_Initialize_Params *p)
{
	CUptiResult result = cupti_check();

	if (result || !IS_KNOWN(p, CUpti_Profiler_Initialize_Params, pPriv))
		return result ? result : CUPTI_ERROR_INVALID_PARAMETER;
	n_initialised = 1;
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiProfilerDeInitialize(CUpti_Profiler_DeInitialize_Params *p)
{
	if (!atomic_exchange(&n_initialised, 0))
		sim_violation(
			"cuptiProfilerDeInitialize was called twice, which crashes the real one");
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiDeviceGetChipName(CUpti_Device_GetChipName_Params *p)
{
	static const struct {
		int arch;
		const char *name;
	} chips[] = {{80, "GA100"}, {86, "GA102"},  {89, "AD102"},
		     {90, "GH100"}, {100, "GB100"}, {120, "GB202"}};
	CUptiResult result = profiler_check();

	if (result)
		return result;
	if (!IS_KNOWN(p, CUpti_Device_GetChipName_Params, pChipName) ||
	    !sim_device((int)p->deviceIndex))
		return CUPTI_ERROR_INVALID_PARAMETER;
	for (size_t i = 0; i < sizeof(chips) / sizeof(chips[0]); i++)
		if (chips[i].arch == sim_config()->arch) {
			p->pChipName = chips[i].name;
			return CUPTI_SUCCESS;
		}
	return CUPTI_ERROR_UNKNOWN;
}

/* Images of what can be counted hold nothing: all of it can. */
enum { AVAILABILITY_BYTES = 64 };

static CUptiResult give_availability(uint8_t *image, size_t *n_bytes)
{
	if (image && *n_bytes < AVAILABILITY_BYTES)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (image)
		memset(image, 1, AVAILABILITY_BYTES);
	*n_bytes = AVAILABILITY_BYTES;
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiProfilerGetCounterAvailability(CUpti_Profiler_GetCounterAvailability_Params *p)
{
	CUptiResult result = profiler_check();

	if (result)
		return result;
	if (!IS_KNOWN(p, CUpti_Profiler_GetCounterAvailability_Params, pCounterAvailabilityImage) ||
	    !sim_context_is_live((struct sim_context *)p->ctx))
		return CUPTI_ERROR_INVALID_PARAMETER;
	return give_availability(p->pCounterAvailabilityImage, &p->counterAvailabilityImageSize);
}

CUptiResult
do_cuptiPmSamplingGetCounterAvailability(CUpti_PmSampling_GetCounterAvailability_Params *p)
{
	CUptiResult result = profiler_check();

	if (result)
		return result;
	if (!IS_KNOWN(p, CUpti_PmSampling_GetCounterAvailability_Params,
		      pCounterAvailabilityImage) ||
	    !sim_device((int)p->deviceIndex))
		return CUPTI_ERROR_INVALID_PARAMETER;
	return give_availability(p->pCounterAvailabilityImage, &p->counterAvailabilityImageSize);
}

/* ---- objects --------------------------------------------------------------------------------- */

static struct host *host_of(CUpti_Profiler_Host_Object *object)
{
	struct host *host = (struct host *)object;

	return host && host->magic == HOST_MAGIC ? host : NULL;
}

/* As the real one: larger structs are those of an unknown version. */
CUptiResult do_cuptiProfilerHostInitialize(CUpti_Profiler_Host_Initialize_Params *p)
{
	struct host *host;

	if (!IS_KNOWN(p, CUpti_Profiler_Host_Initialize_Params, pHostObject) || !p->pChipName ||
	    (unsigned)p->profilerType >= CUPTI_PROFILER_TYPE_PROFILER_INVALID)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (strcmp(p->pChipName, "GH100"))
		return CUPTI_ERROR_INVALID_CHIP_NAME;
	host = calloc(1, sizeof(*host));
	host->magic = HOST_MAGIC;
	host->config = (struct config_image){.magic = CONFIG_MAGIC, .type = p->profilerType};
	p->pHostObject = (CUpti_Profiler_Host_Object *)host;
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiProfilerHostDeinitialize(CUpti_Profiler_Host_Deinitialize_Params *p)
{
	struct host *host = p ? host_of(p->pHostObject) : NULL;

	if (!host)
		return CUPTI_ERROR_INVALID_PARAMETER;
	host->magic = 0;
	free(host);
	return CUPTI_SUCCESS;
}

/* The row of a metric that the profiler has, or -1. */
static int row_of(const char *name, uint32_t type)
{
	for (int i = 0; name && i < N_METRICS; i++)
		if (!strcmp(metrics[i].name, name) && metrics[i].passes[type])
			return i;
	return -1;
}

CUptiResult
do_cuptiProfilerHostGetMetricProperties(CUpti_Profiler_Host_GetMetricProperties_Params *p)
{
	struct host *host = p ? host_of(p->pHostObject) : NULL;
	int row = host ? row_of(p->pMetricName, host->config.type) : -1;

	if (!host || !IS_KNOWN(p, CUpti_Profiler_Host_GetMetricProperties_Params, metricType))
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (row < 0)
		return CUPTI_ERROR_INVALID_METRIC_NAME;
	p->pDescription = p->pHwUnit = "";
	p->pDimUnit = metrics[row].unit;
	p->metricType = CUPTI_METRIC_TYPE_COUNTER;
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiProfilerHostConfigAddMetrics(CUpti_Profiler_Host_ConfigAddMetrics_Params *p)
{
	struct host *host = p ? host_of(p->pHostObject) : NULL;

	if (!host || !IS_KNOWN(p, CUpti_Profiler_Host_ConfigAddMetrics_Params, numMetrics))
		return CUPTI_ERROR_INVALID_PARAMETER;
	/* One unknown name, and none is added. */
	for (size_t i = 0; i < p->numMetrics; i++)
		if (row_of(p->ppMetricNames[i], host->config.type) < 0)
			return CUPTI_ERROR_INVALID_METRIC_NAME;
	for (size_t i = 0; i < p->numMetrics && host->config.n < MAX_METRICS; i++) {
		int row = row_of(p->ppMetricNames[i], host->config.type);

		host->config.metrics[host->config.n++] = (uint8_t)row;
		if (metrics[row].passes[host->config.type] > host->config.n_passes)
			host->config.n_passes = metrics[row].passes[host->config.type];
	}
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiProfilerHostGetConfigImageSize(CUpti_Profiler_Host_GetConfigImageSize_Params *p)
{
	if (!p || !host_of(p->pHostObject))
		return CUPTI_ERROR_INVALID_PARAMETER;
	p->configImageSize = sizeof(struct config_image);
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiProfilerHostGetConfigImage(CUpti_Profiler_Host_GetConfigImage_Params *p)
{
	struct host *host = p ? host_of(p->pHostObject) : NULL;

	if (!host || p->configImageSize < sizeof(host->config) || !p->pConfigImage)
		return CUPTI_ERROR_INVALID_PARAMETER;
	memcpy(p->pConfigImage, &host->config, sizeof(host->config));
	return CUPTI_SUCCESS;
}

const struct config_image *config_of(const uint8_t *bytes, size_t n, CUpti_ProfilerType type)
{
	const struct config_image *config = (const struct config_image *)bytes;

	return config && n >= sizeof(*config) && config->magic == CONFIG_MAGIC &&
			       config->type == (uint32_t)type
		       ? config
		       : NULL;
}

CUptiResult do_cuptiProfilerHostGetNumOfPasses(CUpti_Profiler_Host_GetNumOfPasses_Params *p)
{
	const struct config_image *config = p ? (const struct config_image *)p->pConfigImage : NULL;

	if (!config || p->configImageSize < sizeof(*config) || config->magic != CONFIG_MAGIC)
		return CUPTI_ERROR_INVALID_PARAMETER;
	p->numOfPasses = config->n_passes;
	return CUPTI_SUCCESS;
}

/* ---- values ---------------------------------------------------------------------------------- */

size_t data_image_bytes(size_t n_most)
{
	return sizeof(struct data_image) + n_most * sizeof(((struct data_image *)0)->items[0]);
}

struct data_image *data_image_of(const uint8_t *bytes, size_t n)
{
	struct data_image *image = (struct data_image *)(uintptr_t)bytes;

	return image && n >= sizeof(*image) && image->magic == DATA_MAGIC &&
			       n >= data_image_bytes(image->n_most)
		       ? image
		       : NULL;
}

CUptiResult data_image_initialise(uint8_t *bytes, size_t n)
{
	struct data_image *image = (struct data_image *)bytes;

	if (!image || n < sizeof(*image))
		return CUPTI_ERROR_INVALID_PARAMETER;
	memset(image, 0, n);
	image->magic = DATA_MAGIC;
	image->n_most = (uint32_t)((n - sizeof(*image)) / sizeof(image->items[0]));
	return CUPTI_SUCCESS;
}

static double value_of(const struct metric *metric, const struct counted *counted)
{
	uint64_t value = metric->per_ns * counted->ns + metric->per_thread * counted->threads;

	return (double)(metric->modulus ? value % metric->modulus : value);
}

CUptiResult
do_cuptiProfilerHostEvaluateToGpuValues(CUpti_Profiler_Host_EvaluateToGpuValues_Params *p)
{
	struct host *host = p ? host_of(p->pHostObject) : NULL;
	const struct data_image *image =
		p ? data_image_of(p->pCounterDataImage, p->counterDataImageSize) : NULL;

	if (!host || !image || p->rangeIndex >= image->n)
		return CUPTI_ERROR_INVALID_PARAMETER;
	for (size_t i = 0; i < p->numMetrics; i++) {
		int row = row_of(p->ppMetricNames[i], host->config.type);

		if (row < 0)
			return CUPTI_ERROR_INVALID_METRIC_NAME;
		p->pMetricValues[i] =
			memchr(host->config.metrics, row, host->config.n)
				? value_of(&metrics[row], &image->items[p->rangeIndex].counted)
				: (double)NAN;
	}
	return CUPTI_SUCCESS;
}

uint64_t threads_of(const struct sim_kernel_work *kernel)
{
	uint64_t n = 1;

	for (int i = 0; i < 3; i++)
		n *= (uint64_t)kernel->grid[i] * kernel->block[i];
	return n;
}
#endif
