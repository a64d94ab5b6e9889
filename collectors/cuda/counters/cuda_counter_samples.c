/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Measures devices at intervals, on a thread of the agent: PM sampling writes samples to a buffer
 * of the device, from which they are fetched some ten times a second. Their times are on a clock of
 * the device that can't be read otherwise: the moments at which samples were fetched locate that
 * clock. See cuda_counter_ranges.c for why the set-up has no code in common with it.
 */
#include "collectors/cuda/counters/cuda_counter_samples.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>

#include "agent/process/config.h"
#include "agent/wire/event.h"
#include "collectors/cuda/counters/cuda_counter_set.h"
#include "collectors/cuda/counters/cuda_counters.h"
#include "collectors/cuda/cuda_ticks.h"
#include "collectors/cuda/counters/cuda_counter_state.h"
#include "shim/cuda/cupti.h"
#include "shim/cuda/cupti_profiler.h"
#include "shim/libc/thread.h"
#include "shim/sys.h"

#define DEVICES_MAX 32u
#define FETCH_EVERY_NS UINT64_C(20000000)
#define FETCH_AT_LEAST 8u /* samples at a time */
#define SLACK 4u /* capacity for this many times as many: the thread may be late */
#define SLACK_SAMPLES 64u
/* A sample took 7 KB of the device's buffer with 4 metrics; this is not documented. */
#define DEVICE_BYTES_A_SAMPLE (UINT64_C(32) << 10)
#define DEVICE_BYTES_MIN (UINT64_C(16) << 20)
#define DEVICE_BYTES_MAX (UINT64_C(512) << 20)
#define OVERFLOWS_MAX 8u /* of a device's buffer, before it is given up */
#define END_AT_MOST_NS UINT64_C(2000000000)
#define N_READINGS 64u

/* Bounds of the host clock's offset to the device's, from one fetch of samples. */
struct reading {
	int64_t low, high;
};

struct sampler {
	uint32_t device, n_overflows;
	void *object; /* NULL: none */
	struct counter_set set;
	uint8_t *image;
	size_t image_bytes;
	uint64_t last_end; /* of the last sample; 0: none yet */
	struct reading readings[N_READINGS];
	uint32_t n_readings;
};

enum thread_state { NOT_STARTED, RUNNING, ENDED };

/* Used by the thread only: DEVICES_MAX of them, NULL before it runs. */
static struct sampler *samplers;
static uint32_t n_samplers;
static _Atomic uint32_t wanted; /* a bit for each device */
static _Atomic uint32_t is_ending, thread_state;

static uint64_t interval_ns(void)
{
	return torsh_config.counters.interval_ns;
}

static uint64_t fetch_every_ns(void)
{
	uint64_t least_ns = interval_ns() * FETCH_AT_LEAST;

	return least_ns > FETCH_EVERY_NS ? least_ns : FETCH_EVERY_NS;
}

static uint32_t n_samples_max(void)
{
	return (uint32_t)(SLACK * fetch_every_ns() / interval_ns() + SLACK_SAMPLES);
}

/* ---- a device -------------------------------------------------------------------------------- */

static int choose(struct sampler *sampler, const char **chip)
{
	struct cupti_chip named = {.n_bytes = CUPTI_PROFILER_BYTES(cupti_chip, name),
				   .device = sampler->device};
	struct cupti_device_availability available = {
		.n_bytes = CUPTI_PROFILER_BYTES(cupti_device_availability, image),
		.device = sampler->device,
	};
	size_t image_bytes;
	int result = torsh_cupti_profiler.DeviceGetChipName(&named);

	if (!result)
		result = torsh_cupti_profiler.PmSamplingGetCounterAvailability(&available);
	if (result)
		return result;
	image_bytes = available.image_bytes;
	available.image = torsh_sys_pages(image_bytes);
	if (!available.image)
		return CUPTI_OUT_OF_MEMORY;
	result = torsh_cupti_profiler.PmSamplingGetCounterAvailability(&available);
	if (!result)
		result = torsh_counter_set_choose(&sampler->set, T, named.name, available.image);
	torsh_sys_munmap(available.image, image_bytes);
	*chip = named.name;
	return result;
}

static int enable(struct sampler *sampler)
{
	struct cupti_sampling_enable enable = {
		.n_bytes = CUPTI_PROFILER_BYTES(cupti_sampling_enable, object),
		.device = sampler->device,
	};
	int result = torsh_cupti_profiler.PmSamplingEnable(&enable);

	sampler->object = result ? NULL : enable.object;
	return result;
}

/*
 * Turing and GA100 only count clocks of some GHz; older CUPTI can't choose which samples to keep.
 */
static int configure(const struct sampler *sampler)
{
	uint64_t bytes = n_samples_max() * DEVICE_BYTES_A_SAMPLE;
	struct cupti_sampling_config config = {
		.n_bytes = CUPTI_PROFILER_BYTES(cupti_sampling_config, append),
		.object = sampler->object,
		.config_bytes = sampler->set.config_bytes,
		.config = sampler->set.config,
		.buffer_bytes = bytes < DEVICE_BYTES_MIN   ? DEVICE_BYTES_MIN
				: bytes > DEVICE_BYTES_MAX ? DEVICE_BYTES_MAX
							   : bytes,
		.interval = interval_ns(),
		.trigger = CUPTI_EVERY_NS,
		.append = CUPTI_KEEP_LATEST,
	};
	int result = torsh_cupti_profiler.PmSamplingSetConfig(&config);

	if (result == CUPTI_INVALID_PARAMETER || result == CUPTI_NOT_SUPPORTED) {
		config.trigger = CUPTI_EVERY_CLOCKS;
		result = torsh_cupti_profiler.PmSamplingSetConfig(&config);
	}
	if (result == CUPTI_INVALID_PARAMETER) {
		config.n_bytes = CUPTI_PROFILER_BYTES(cupti_sampling_config, trigger);
		result = torsh_cupti_profiler.PmSamplingSetConfig(&config);
	}
	return result;
}

/* Like cuda_counter_ranges.c's, with another structure of CUPTI's for the same members. */
static int initialise_image(const struct sampler *sampler)
{
	struct cupti_sampling_image image = {
		.n_bytes = CUPTI_PROFILER_BYTES(cupti_sampling_image, image),
		.object = sampler->object,
		.image_bytes = sampler->image_bytes,
		.image = sampler->image,
	};

	return torsh_cupti_profiler.PmSamplingCounterDataImageInitialize(&image);
}

static int make_image(struct sampler *sampler)
{
	struct cupti_sampling_image_size size = {
		.n_bytes = CUPTI_PROFILER_BYTES(cupti_sampling_image_size, image_bytes),
		.object = sampler->object,
		.names = sampler->set.names,
		.n = sampler->set.n,
		.n_samples_max = n_samples_max(),
	};
	int result = torsh_cupti_profiler.PmSamplingGetCounterDataSize(&size);

	if (result)
		return result;
	sampler->image_bytes = size.image_bytes;
	sampler->image = torsh_sys_pages(size.image_bytes);
	return sampler->image ? initialise_image(sampler) : CUPTI_OUT_OF_MEMORY;
}

static struct cupti_sampling plain(const struct sampler *sampler)
{
	return (struct cupti_sampling){.n_bytes = CUPTI_PROFILER_BYTES(cupti_sampling, object),
				       .object = sampler->object};
}

static void close_sampler(struct sampler *sampler)
{
	struct cupti_sampling object = plain(sampler);

	if (sampler->object)
		torsh_cupti_profiler.PmSamplingDisable(&object);
	torsh_counter_set_free(&sampler->set);
	if (sampler->image)
		torsh_sys_munmap(sampler->image, sampler->image_bytes);
	sampler->object = NULL;
	sampler->image = NULL;
}

static int open_sampler(struct sampler *sampler)
{
	struct cupti_sampling object;
	const char *chip = NULL;
	int result = choose(sampler, &chip);

	if (!result)
		result = enable(sampler);
	if (!result)
		result = configure(sampler);
	if (!result)
		result = make_image(sampler);
	if (!result) {
		object = plain(sampler);
		result = torsh_cupti_profiler.PmSamplingStart(&object);
	}
	if (result) {
		close_sampler(sampler);
		torsh_counters_refuse("no device is sampled", result);
		return -1;
	}
	sampler->last_end = 0;
	sampler->n_readings = 0;
	torsh_counter_set_send(&sampler->set, sampler->device, chip, interval_ns());
	return 0;
}

/* ---- its clock ------------------------------------------------------------------------------- */

/*
 * The last of the samples ended at `end`; it was present at after_ns, and the next one was absent
 * at before_ns.
 */
static void keep_reading(struct sampler *sampler, uint64_t end, uint64_t interval,
			 uint64_t before_ns, uint64_t after_ns)
{
	sampler->readings[sampler->n_readings++ % N_READINGS] = (struct reading){
		.low = (int64_t)(before_ns - interval - end),
		.high = (int64_t)(after_ns - end),
	};
}

/* The host clock's offset: the intersection of the last readings; and its error bound. */
static int64_t distance(const struct sampler *sampler, uint64_t *error_ns)
{
	uint32_t n = sampler->n_readings < N_READINGS ? sampler->n_readings : N_READINGS;
	struct reading all = sampler->readings[0];
	int64_t error;

	for (uint32_t i = 1; i < n; i++) {
		const struct reading *reading = &sampler->readings[i];

		all.low = reading->low > all.low ? reading->low : all.low;
		all.high = reading->high < all.high ? reading->high : all.high;
	}
	/*
	 * The clocks drift apart, or a sample came late: the earliest fetch is the best estimate.
	 */
	error = all.high > all.low ? (all.high - all.low) / 2 : (int64_t)interval_ns();
	*error_ns = (uint64_t)error;
	return all.high > all.low ? all.low + error : all.high;
}

/*
 * The reported error of all samples is that of the worst one. Only the thread that fetches changes
 * it.
 */
static void widen_error(uint64_t error_ns)
{
	if (error_ns >
	    atomic_load_explicit(&torsh_counter_losses.clock_error_ns, memory_order_relaxed))
		atomic_store_explicit(&torsh_counter_losses.clock_error_ns, error_ns,
				      memory_order_relaxed);
}

/* ---- samples --------------------------------------------------------------------------------- */

static int times_of(const struct sampler *sampler, size_t i, uint64_t *start, uint64_t *end)
{
	struct cupti_sampling_times times = {
		.n_bytes = CUPTI_PROFILER_BYTES(cupti_sampling_times, end),
		.object = sampler->object,
		.image = sampler->image,
		.image_bytes = sampler->image_bytes,
		.sample = i,
	};
	int result = torsh_cupti_profiler.PmSamplingCounterDataGetSampleInfo(&times);

	*start = times.start;
	*end = times.end;
	/* A sample without times covers nothing: these follow a full image, and the stop. */
	return !result && times.start && times.end > times.start;
}

static void send_sample(const struct sampler *sampler, uint64_t begin_ns, uint64_t duration_ns,
			const double *values)
{
	for (uint32_t i = 0; i < sampler->set.n; i += COUNTER_VALUES) {
		struct event event = {
			.id = EVENT_COUNTER_SAMPLE,
			.counter_sample =
				{
					.device = sampler->device,
					.begin = begin_ns,
					.duration_ns = duration_ns,
					.first = torsh_counter_number(sampler->device, i),
				},
		};

		event.counter_sample.n = torsh_counter_values(values, i, sampler->set.n,
							      &event.counter_sample.value_0);
		torsh_counters_send(&event);
	}
}

static void count_gap(struct sampler *sampler, uint64_t start, uint64_t end)
{
	uint64_t gap =
		sampler->last_end && start > sampler->last_end ? start - sampler->last_end : 0;

	if (gap)
		atomic_fetch_add_explicit(&torsh_counter_losses.lost,
					  (gap + (end - start) / 2) / (end - start),
					  memory_order_relaxed);
}

static void take_sample(struct sampler *sampler, size_t i, int64_t ahead_ns)
{
	double values[COUNTERS_MAX];
	uint64_t start, end;

	if (!times_of(sampler, i, &start, &end) || start < sampler->last_end)
		return;
	count_gap(sampler, start, end);
	sampler->last_end = end;
	if (torsh_counter_set_evaluate(&sampler->set, sampler->image, sampler->image_bytes, i,
				       values)) {
		COUNTER_COUNT(failed);
		return;
	}
	send_sample(sampler, start + (uint64_t)ahead_ns, end - start, values);
	COUNTER_COUNT(samples);
}

/* The number of complete samples; the last one with times is a reading of the clock. */
static size_t see_samples(struct sampler *sampler, uint64_t before_ns)
{
	struct cupti_sampling_info info = {
		.n_bytes = CUPTI_PROFILER_BYTES(cupti_sampling_info, n_completed),
		.image = sampler->image,
		.image_bytes = sampler->image_bytes,
	};
	uint64_t after_ns = torsh_cuda_monotonic_ns(), start, end;

	if (torsh_cupti_profiler.PmSamplingGetCounterDataInfo(&info))
		return 0;
	for (size_t i = info.n_completed; i; i--)
		if (times_of(sampler, i - 1, &start, &end) && start >= sampler->last_end) {
			keep_reading(sampler, end, end - start, before_ns, after_ns);
			break;
		}
	return info.n_completed;
}

static void take_samples(struct sampler *sampler, size_t n)
{
	uint64_t error_ns;
	int64_t ahead_ns = distance(sampler, &error_ns);

	widen_error(error_ns);
	for (size_t i = 0; i < n; i++)
		take_sample(sampler, i, ahead_ns);
}

/* Returns -1 if the sampler was removed. */
static int fetch(struct sampler *sampler)
{
	struct cupti_sampling_decode decode = {
		.n_bytes = CUPTI_PROFILER_BYTES(cupti_sampling_decode, has_overflowed),
		.object = sampler->object,
		.image = sampler->image,
		.image_bytes = sampler->image_bytes,
	};
	uint64_t before_ns = torsh_cuda_monotonic_ns();
	int result = torsh_cupti_profiler.PmSamplingDecodeData(&decode);
	size_t n;

	if (decode.has_overflowed || result == CUPTI_OUT_OF_MEMORY) {
		COUNTER_COUNT(lost);
		close_sampler(sampler);
		if (++sampler->n_overflows < OVERFLOWS_MAX)
			return open_sampler(sampler);
		torsh_counters_refuse("samples come faster than they can be fetched",
				      CUPTI_OUT_OF_MEMORY);
		return -1;
	}
	n = result ? 0 : see_samples(sampler, before_ns);
	if (n && sampler->n_readings)
		take_samples(sampler, n);
	if (!result && n)
		result = initialise_image(sampler);
	if (result) {
		close_sampler(sampler);
		torsh_counters_refuse("samples can't be fetched any more", result);
		return -1;
	}
	return 0;
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Start samplers for the devices used since the last call; -1: one refused. */
static int open_new(void)
{
	uint32_t seen = atomic_load(&wanted);

	for (uint32_t device = 0; device < DEVICES_MAX; device++) {
		bool is_known = false;

		for (uint32_t i = 0; i < n_samplers; i++)
			is_known |= samplers[i].device == device;
		if (!(seen & UINT32_C(1) << device) || is_known)
			continue;
		samplers[n_samplers].device = device;
		if (open_sampler(&samplers[n_samplers]))
			return -1;
		n_samplers++;
	}
	return 0;
}

static int fetch_all(void)
{
	for (uint32_t i = 0; i < n_samplers; i++)
		if (fetch(&samplers[i]))
			return -1;
	return 0;
}

static void stop_all(void)
{
	for (uint32_t i = 0; i < n_samplers; i++) {
		struct cupti_sampling object = plain(&samplers[i]);

		if (!samplers[i].object)
			continue;
		torsh_cupti_profiler.PmSamplingStop(&object);
		fetch(&samplers[i]);
		close_sampler(&samplers[i]);
	}
}

static void *run(void *unused)
{
	(void)unused;
	TORSH_SYS(SYS_prctl, PR_SET_NAME, "torsh-counters", 0, 0, 0, 0);
	samplers = torsh_sys_pages(DEVICES_MAX * sizeof(*samplers));
	if (samplers && !torsh_counters_initialise())
		while (!atomic_load(&is_ending) && !open_new() && !fetch_all())
			torsh_sys_futex_wait(&is_ending, 0, fetch_every_ns());
	stop_all();
	atomic_store(&thread_state, ENDED);
	torsh_sys_futex_wake(&thread_state, 1);
	return NULL;
}

void torsh_counter_samples_see(void *context, uint32_t context_id)
{
	static _Thread_local uint32_t last_id;
	uint32_t device, nothing = NOT_STARTED;
	int result;

	if (last_id == context_id || !context || torsh_cupti.GetDeviceId(context, &device) ||
	    device >= DEVICES_MAX)
		return;
	last_id = context_id;
	atomic_fetch_or(&wanted, UINT32_C(1) << device);
	if (!atomic_compare_exchange_strong(&thread_state, &nothing, RUNNING))
		return;
	result = torsh_thread_start(run, NULL);
	if (result) {
		atomic_store(&thread_state, ENDED);
		torsh_counters_refuse("there is no thread for it", CUPTI_OUT_OF_MEMORY);
	}
}

void torsh_counter_samples_end(void)
{
	uint64_t until_ns = torsh_cuda_monotonic_ns() + END_AT_MOST_NS, now_ns;

	atomic_store(&is_ending, 1);
	torsh_sys_futex_wake(&is_ending, 1);
	while (atomic_load(&thread_state) == RUNNING &&
	       (now_ns = torsh_cuda_monotonic_ns()) < until_ns)
		torsh_sys_futex_wait(&thread_state, RUNNING, until_ns - now_ns);
}
