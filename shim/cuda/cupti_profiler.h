/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The part of CUPTI that reads counters. Its headers are C++ in some versions; the used part is
 * declared here, and test/unit/shim/cupti_profiler_test.c compares it with them.
 *
 * Every function takes one struct, which begins with its size: a version refuses a larger struct
 * than its own, and treats a smaller one as that of an older version. So these are the structs of
 * CUDA 12.6, the first that had them all. CUPTI_PROFILER_BYTES is the size to pass: up to the last
 * field, without padding.
 */
#ifndef TORSH_SHIM_CUDA_CUPTI_PROFILER_H
#define TORSH_SHIM_CUDA_CUPTI_PROFILER_H

#include <stddef.h>
#include <stdint.h>

#include "shim/cuda/cupti.h"

/* CUpti_ProfilerType */
enum cupti_profiler_type { CUPTI_PROFILER_OF_RANGES, CUPTI_PROFILER_OF_SAMPLES };
enum { CUPTI_RANGE_IS_KERNEL = 1 }; /* CUPTI_AutoRange */
/* CUPTI_KernelReplay; with a single pass nothing is replayed */
enum { CUPTI_REPLAY_OF_KERNELS = 2 };
enum cupti_trigger { CUPTI_EVERY_CLOCKS, CUPTI_EVERY_NS }; /* CUpti_PmSampling_TriggerMode */
enum { CUPTI_KEEP_LATEST = 1 }; /* CUpti_PmSampling_HardwareBuffer_AppendMode */

#define CUPTI_PROFILER_HEAD \
	size_t n_bytes;     \
	void *reserved

struct cupti_profiler {
	CUPTI_PROFILER_HEAD;
};

struct cupti_chip {
	CUPTI_PROFILER_HEAD;
	size_t device;
	const char *name; /* out */
};

struct cupti_context_availability {
	CUPTI_PROFILER_HEAD;
	void *context;
	size_t image_bytes; /* in and out */
	uint8_t *image; /* NULL: query only the size */
};

struct cupti_device_availability {
	CUPTI_PROFILER_HEAD;
	size_t device;
	size_t image_bytes; /* in and out */
	uint8_t *image;
};

struct cupti_host_create {
	CUPTI_PROFILER_HEAD;
	int type; /* enum cupti_profiler_type */
	const char *chip;
	const uint8_t *availability;
	void *host; /* out */
};

struct cupti_host {
	CUPTI_PROFILER_HEAD;
	void *host;
};

struct cupti_host_metric {
	CUPTI_PROFILER_HEAD;
	void *host;
	const char *name;
	const char *description, *hardware_unit, *unit; /* out */
	int type; /* out */
};

struct cupti_host_metrics {
	CUPTI_PROFILER_HEAD;
	void *host;
	const char **names;
	size_t n;
};

struct cupti_host_config_size {
	CUPTI_PROFILER_HEAD;
	void *host;
	size_t image_bytes; /* out */
};

struct cupti_host_config {
	CUPTI_PROFILER_HEAD;
	void *host;
	size_t image_bytes;
	uint8_t *image;
};

struct cupti_host_passes {
	CUPTI_PROFILER_HEAD;
	size_t image_bytes;
	uint8_t *image;
	size_t n_passes; /* out */
};

struct cupti_host_values {
	CUPTI_PROFILER_HEAD;
	void *host;
	const uint8_t *image;
	size_t image_bytes, range;
	const char **names;
	size_t n;
	double *values;
};

struct cupti_range_enable {
	CUPTI_PROFILER_HEAD;
	void *context;
	void *object; /* out */
};

struct cupti_range {
	CUPTI_PROFILER_HEAD;
	void *object;
};

struct cupti_range_image_size {
	CUPTI_PROFILER_HEAD;
	void *object;
	const char **names;
	size_t n, n_ranges_max;
	uint32_t n_nodes_max;
	size_t image_bytes; /* out */
};

struct cupti_range_image {
	CUPTI_PROFILER_HEAD;
	void *object;
	size_t image_bytes;
	uint8_t *image;
};

struct cupti_range_config {
	CUPTI_PROFILER_HEAD;
	void *object;
	size_t config_bytes;
	const uint8_t *config;
	size_t image_bytes;
	uint8_t *image;
	int range, replay;
	size_t n_ranges_max;
	uint16_t n_levels, first_level;
	size_t pass;
	uint16_t target_level;
};

struct cupti_range_stop {
	CUPTI_PROFILER_HEAD;
	void *object;
	size_t pass, level; /* out */
	uint8_t is_complete; /* out */
};

struct cupti_range_decode {
	CUPTI_PROFILER_HEAD;
	void *object;
	size_t n_dropped; /* out */
};

struct cupti_range_info {
	CUPTI_PROFILER_HEAD;
	const uint8_t *image;
	size_t image_bytes;
	size_t n_ranges; /* out */
};

struct cupti_sampling_enable {
	CUPTI_PROFILER_HEAD;
	size_t device;
	void *object; /* out */
};

struct cupti_sampling {
	CUPTI_PROFILER_HEAD;
	void *object;
};

/* The last field is of CUDA 12.9. */
struct cupti_sampling_config {
	CUPTI_PROFILER_HEAD;
	void *object;
	size_t config_bytes;
	const uint8_t *config;
	size_t buffer_bytes;
	uint64_t interval; /* ns, or clocks */
	int trigger; /* enum cupti_trigger */
	int append;
};

struct cupti_sampling_image_size {
	CUPTI_PROFILER_HEAD;
	void *object;
	const char **names;
	size_t n;
	uint32_t n_samples_max;
	size_t image_bytes; /* out */
};

struct cupti_sampling_image {
	CUPTI_PROFILER_HEAD;
	void *object;
	size_t image_bytes;
	uint8_t *image;
};

struct cupti_sampling_decode {
	CUPTI_PROFILER_HEAD;
	void *object;
	uint8_t *image;
	size_t image_bytes;
	int stopped_by; /* out */
	uint8_t has_overflowed; /* out */
};

struct cupti_sampling_info {
	CUPTI_PROFILER_HEAD;
	const uint8_t *image;
	size_t image_bytes;
	size_t n_samples, n_populated, n_completed; /* out */
};

struct cupti_sampling_times {
	CUPTI_PROFILER_HEAD;
	void *object;
	const uint8_t *image;
	size_t image_bytes, sample;
	uint64_t start, end; /* out; ns of the device's own clock */
};

#undef CUPTI_PROFILER_HEAD

/* The bytes of a struct up to its last field. */
#define CUPTI_PROFILER_BYTES(type, last) \
	(offsetof(struct type, last) + sizeof(((struct type *)0)->last))

/* The functions without their prefix "cupti"; filled by torsh_cupti_profiler_open. */
struct cupti_profiler_functions {
#define CUPTI_PROFILER(Name, parameters) int (*Name)(struct cupti_##parameters *);
#include "shim/cuda/cupti_profiler.def"
#undef CUPTI_PROFILER
};

extern struct cupti_profiler_functions torsh_cupti_profiler;

/*
 * Find them in the library, a handle of dlopen's, and load what they need of its folder. Returns 0,
 * or -ENOSYS if one is missing.
 */
int torsh_cupti_profiler_open(void *library);

#endif
