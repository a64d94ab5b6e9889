/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the files of the simulated counters share: host.c has metrics and computes their values,
 * ranges.c counts kernels of a context, sampling.c devices at intervals. Every rule about the order
 * of calls is checked here, or answered with the error that the headers name; what would hang or
 * crash is a violation.
 */
#ifndef SIMCUDA_PROFILER_H
#define SIMCUDA_PROFILER_H

#include "test/simcuda/cupti/cupti.h"

#if __has_include(<cupti_range_profiler.h>) && CUPTI_API_VERSION >= 130200
#define HAS_COUNTERS 1

enum { MAX_METRICS = 64, MAX_PASSES = 11 };

/* What was counted of a kernel, or of the kernels of a sample. */
struct counted {
	uint64_t ns, threads;
};

/* What a config image is here. */
struct config_image {
	uint32_t magic, type, n_passes, n;
	uint8_t metrics[MAX_METRICS]; /* rows of metrics.def */
};

/* What a counter data image is; `items` fill the rest of it. */
struct data_image {
	uint32_t magic, is_initialised, n, n_most;
	struct {
		struct counted counted;
		uint64_t start, end; /* of samples */
	} items[];
};

enum { CONFIG_MAGIC = 0x51c0f16, DATA_MAGIC = 0x51da7a };

/* A struct of parameters has a known version, up to the field that the first one ended with. */
#define IS_KNOWN(p, type, last)                                                \
	((p) && (p)->structSize >= offsetof(type, last) + sizeof((p)->last) && \
	 (p)->structSize <= sizeof(type) && !(p)->pPriv)

/* 0, or the result of every call before cuptiProfilerInitialize. */
CUptiResult profiler_check(void);

/* The config image, if it is one of that kind. */
const struct config_image *config_of(const uint8_t *bytes, size_t n, CUpti_ProfilerType type);

size_t data_image_bytes(size_t n_most);
CUptiResult data_image_initialise(uint8_t *bytes, size_t n);
struct data_image *data_image_of(const uint8_t *bytes, size_t n);

/* Told by the engine, under its lock: an operation has ended. */
void ranges_op_ends(const struct sim_op *op);
void sampling_op_ends(const struct sim_op *op);

/* A call that launches has ended: the kernel runs alone where it is counted. */
void ranges_launched(void);

/* The threads of a kernel. */
uint64_t threads_of(const struct sim_kernel_work *kernel);

#else
#define HAS_COUNTERS 0
static inline void ranges_op_ends(const struct sim_op *op)
{
}
static inline void sampling_op_ends(const struct sim_op *op)
{
}
static inline void ranges_launched(void)
{
}
#endif

#endif
