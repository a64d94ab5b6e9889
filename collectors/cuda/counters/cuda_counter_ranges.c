/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Measures kernels one by one. Of equal launches (name, grid, block, shared memory) the first few
 * are measured, from begin to end of the launching call: CUPTI's range profiler is started, the
 * kernel runs alone, its values are read and sent. All others run as without the agent. Everything
 * here runs with the gate closed, so on one thread at a time, except the look-up of a launch.
 *
 * A context is set up in the steps of a sampler in cuda_counter_samples.c, but each step calls
 * another function of CUPTI with a struct of its own.
 */
#include "collectors/cuda/counters/cuda_counter_ranges.h"

#include <stdbool.h>
#include <string.h>

#include "agent/process/config.h"
#include "agent/process/process.h"
#include "agent/process/text_buffer.h"
#include "agent/producer/counter.h"
#include "agent/producer/label.h"
#include "agent/wire/event.h"
#include "collectors/cuda/counters/cuda_counter_gate.h"
#include "collectors/cuda/counters/cuda_counter_set.h"
#include "collectors/cuda/counters/cuda_counters.h"
#include "collectors/cuda/cuda_lock.h"
#include "collectors/cuda/counters/cuda_counter_state.h"
#include "shim/cuda/cupti.h"
#include "shim/cuda/cupti_profiler.h"
#include "shim/sys.h"

#define SAMPLES_PER_LAUNCH 3u
#define TRIES_PER_LAUNCH 6u /* includes those that can't be measured */
/* kinds of launches; a power of two. Further ones are counted, not measured */
#define LAUNCHES_MAX 8192u
#define CONTEXTS_MAX 16u
#define RANGES_MAX 8u /* in one image: one, unless something else ran too */
#define FAILURES_MAX 4u /* of CUPTI in a row, before it is given up */

/* What equal launches have in common. */
struct kind {
	uint32_t name; /* label; 0: an empty entry */
	struct cupti_launch_config shape;
};

struct launch {
	struct kind kind;
	uint32_t number, n_samples, n_tries;
};

static struct cuda_lock lock; /* guards the table */
static struct launch *launches;
static uint32_t n_launches;

/* A context with measured kernels. */
struct context {
	void *handle; /* NULL: an empty entry */
	uint32_t device;
	void *object;
	struct counter_set set;
	uint8_t *image;
	size_t image_bytes;
};

static struct context contexts[CONTEXTS_MAX];
static uint32_t n_failures;

/* The current measurement. */
static struct {
	struct launch *launch;
	struct context *context;
} now;

/* ---- equal launches -------------------------------------------------------------------------- */

static uint32_t hash_of(const struct kind *kind)
{
	uint32_t words[sizeof(*kind) / sizeof(uint32_t)], hash = 2166136261u; /* FNV-1a, by words */

	memcpy(words, kind, sizeof(words));
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		hash = (hash ^ words[i]) * 16777619u;
	return hash ^ hash >> 15;
}

static struct launch *find_launch(const struct kind *kind)
{
	uint32_t at = hash_of(kind);

	for (;; at++) {
		struct launch *launch = &launches[at % LAUNCHES_MAX];

		if (launch->kind.name && memcmp(&launch->kind, kind, sizeof(*kind)))
			continue;
		if (!launch->kind.name) {
			/* A quarter stays empty, so that searches are short. */
			if (n_launches >= LAUNCHES_MAX / 4 * 3) {
				torsh_count(COUNTER_launches_unmeasured);
				return NULL;
			}
			*launch = (struct launch){.kind = *kind, .number = n_launches++};
		}
		return launch;
	}
}

/* The launches equal to this one, if more of them are to be measured. */
static struct launch *find_wanted(const struct cupti_call *call,
				  const struct cupti_launch_config *shape)
{
	struct kind kind = {.name = torsh_label(call->symbol, strlen(call->symbol)),
			    .shape = *shape};
	struct launch *launch = NULL;

	if (!kind.name)
		return NULL;
	torsh_cuda_lock(&lock);
	if (!launches)
		launches = torsh_sys_pages(LAUNCHES_MAX * sizeof(*launches));
	if (launches)
		launch = find_launch(&kind);
	if (launch &&
	    (launch->n_samples >= SAMPLES_PER_LAUNCH || launch->n_tries >= TRIES_PER_LAUNCH))
		launch = NULL;
	torsh_cuda_unlock(&lock);
	return launch;
}

static void send_launch(const struct launch *launch)
{
	const struct kind *kind = &launch->kind;
	struct event event = {
		.id = EVENT_COUNTER_LAUNCH,
		.counter_launch =
			{
				.number = launch->number,
				.name = kind->name,
				EVENT_SHAPE(kind->shape.grid, kind->shape.block),
				.dynamic_shared_bytes = kind->shape.shared_bytes,
			},
	};

	torsh_counters_send(&event);
}

/* ---- a context ------------------------------------------------------------------------------- */

static enum counter_choice choice(void)
{
	if (torsh_config.counters.n_passes == COUNTERS_ALL_PASSES)
		return FULL;
	return torsh_config.counters.n_passes > 1 ? K2 : K1;
}

/* What counters cost that need many passes is in the report, also where they are not shown. */
static void note_cost(const struct context *context)
{
	struct text note;

	if (torsh_config.counters.n_passes != COUNTERS_ALL_PASSES)
		return;
	note = torsh_text_map(TEXT_NOTE_BYTES);
	torsh_text_put(&note, "counters: of launches that are alike up to ");
	torsh_text_put_number(&note, SAMPLES_PER_LAUNCH);
	torsh_text_put(&note, " ran ");
	torsh_text_put_number(&note, context->set.n_passes);
	torsh_text_put(&note, " times each, and what they wrote was restored in between");
	torsh_channel_note(&torsh_process->channel, note.bytes);
	torsh_text_unmap(&note);
}

/* Choose the metrics for the context's device. */
static int choose(struct context *context, const char **chip)
{
	struct cupti_chip named = {.n_bytes = CUPTI_PROFILER_BYTES(cupti_chip, name),
				   .device = context->device};
	struct cupti_context_availability available = {
		.n_bytes = CUPTI_PROFILER_BYTES(cupti_context_availability, image),
		.context = context->handle,
	};
	size_t image_bytes;
	int result = torsh_cupti_profiler.DeviceGetChipName(&named);

	if (!result)
		result = torsh_cupti_profiler.ProfilerGetCounterAvailability(&available);
	if (result)
		return result;
	image_bytes = available.image_bytes;
	available.image = torsh_sys_pages(image_bytes);
	if (!available.image)
		return CUPTI_OUT_OF_MEMORY;
	result = torsh_cupti_profiler.ProfilerGetCounterAvailability(&available);
	if (!result)
		result = torsh_counter_set_choose(&context->set, choice(), named.name,
						  available.image);
	torsh_sys_munmap(available.image, image_bytes);
	*chip = named.name;
	return result;
}

/* Like cuda_counter_samples.c's, with another structure of CUPTI's for the same members. */
static int initialise_image(const struct context *context)
{
	struct cupti_range_image image = {
		.n_bytes = CUPTI_PROFILER_BYTES(cupti_range_image, image),
		.object = context->object,
		.image_bytes = context->image_bytes,
		.image = context->image,
	};

	return torsh_cupti_profiler.RangeProfilerCounterDataImageInitialize(&image);
}

static int make_image(struct context *context)
{
	struct cupti_range_image_size size = {
		.n_bytes = CUPTI_PROFILER_BYTES(cupti_range_image_size, image_bytes),
		.object = context->object,
		.names = context->set.names,
		.n = context->set.n,
		.n_ranges_max = RANGES_MAX,
		.n_nodes_max = RANGES_MAX,
	};
	int result = torsh_cupti_profiler.RangeProfilerGetCounterDataSize(&size);

	if (result)
		return result;
	context->image_bytes = size.image_bytes;
	context->image = torsh_sys_pages(size.image_bytes);
	return context->image ? initialise_image(context) : CUPTI_OUT_OF_MEMORY;
}

static int configure(const struct context *context)
{
	struct cupti_range_config config = {
		.n_bytes = CUPTI_PROFILER_BYTES(cupti_range_config, target_level),
		.object = context->object,
		.config_bytes = context->set.config_bytes,
		.config = context->set.config,
		.image_bytes = context->image_bytes,
		.image = context->image,
		.range = CUPTI_RANGE_IS_KERNEL,
		.replay = CUPTI_REPLAY_OF_KERNELS,
		.n_ranges_max = RANGES_MAX,
		.n_levels = 1,
		.first_level = 1,
		.target_level = 1,
	};

	return torsh_cupti_profiler.RangeProfilerSetConfig(&config);
}

/* Stop measuring the context, also after a partial start. */
static void close_context(struct context *context)
{
	struct cupti_range object = {.n_bytes = CUPTI_PROFILER_BYTES(cupti_range, object),
				     .object = context->object};

	if (context->object)
		torsh_cupti_profiler.RangeProfilerDisable(&object);
	torsh_counter_set_free(&context->set);
	if (context->image)
		torsh_sys_munmap(context->image, context->image_bytes);
	*context = (struct context){0};
}

static int enable(struct context *context)
{
	struct cupti_range_enable enable = {
		.n_bytes = CUPTI_PROFILER_BYTES(cupti_range_enable, object),
		.context = context->handle,
	};
	int result = torsh_cupti_profiler.RangeProfilerEnable(&enable);

	context->object = result ? NULL : enable.object;
	return result;
}

static int open_context(struct context *context, void *handle)
{
	const char *chip = NULL;
	int result;

	*context = (struct context){.handle = handle};
	result = torsh_cupti.GetDeviceId(handle, &context->device);
	if (!result)
		result = choose(context, &chip);
	if (!result)
		result = enable(context);
	if (!result)
		result = make_image(context);
	if (!result)
		result = configure(context);
	if (!result) {
		torsh_counter_set_send(&context->set, context->device, chip, 0);
		note_cost(context);
		return 0;
	}
	close_context(context);
	torsh_counters_refuse("no kernel is measured", result);
	return -1;
}

/* The context's state, created on first use; NULL: it can't be measured. */
static struct context *find_context(void *handle)
{
	struct context *spare = NULL;

	for (uint32_t i = 0; i < CONTEXTS_MAX; i++) {
		if (contexts[i].handle == handle)
			return &contexts[i];
		if (!contexts[i].handle && !spare)
			spare = &contexts[i];
	}
	if (!spare)
		torsh_count(COUNTER_launches_unmeasured);
	return spare && !torsh_counters_initialise() && !open_context(spare, handle) ? spare : NULL;
}

/* ---- a kernel -------------------------------------------------------------------------------- */

static void fail(const char *what, int result)
{
	COUNTER_COUNT(failed);
	/* Nothing ran, or something else too: that concerns only this launch. */
	if (result && ++n_failures >= FAILURES_MAX)
		torsh_counters_refuse(what, result);
}

bool torsh_counter_range_begin(const struct cupti_call *call,
			       const struct cupti_launch_config *shape)
{
	struct launch *launch = find_wanted(call, shape);
	struct cupti_range start = {.n_bytes = CUPTI_PROFILER_BYTES(cupti_range, object)};
	int result;

	if (!launch || !torsh_counter_gate_close_to_measure())
		return false;
	launch->n_tries++;
	now.launch = launch;
	now.context = find_context(call->context);
	if (now.context) {
		start.object = now.context->object;
		result = torsh_cupti_profiler.RangeProfilerStart(&start);
		if (!result)
			return true;
		fail("no kernel could be measured", result);
	}
	torsh_counter_gate_open();
	return false;
}

static void send_values(const struct cupti_call *call, const double *values)
{
	const struct counter_set *set = &now.context->set;

	if (!now.launch->n_samples)
		send_launch(now.launch);
	for (uint32_t i = 0; i < set->n; i += COUNTER_VALUES) {
		struct event event = {
			.id = EVENT_COUNTER_RANGE,
			.counter_range =
				{
					.launch = now.launch->number,
					.correlation = call->correlation,
					.device = now.context->device,
					.context = call->context_id,
					.first = torsh_counter_number(now.context->device, i),
				},
		};

		event.counter_range.n =
			torsh_counter_values(values, i, set->n, &event.counter_range.value_0);
		torsh_counters_send(&event);
	}
}

/* Stop, and write the counts into the image; *n_ranges kernels ran meanwhile. */
static int stop(const struct context *context, size_t *n_ranges)
{
	struct cupti_range_stop stop = {
		.n_bytes = CUPTI_PROFILER_BYTES(cupti_range_stop, is_complete),
		.object = context->object,
	};
	struct cupti_range_decode decode = {
		.n_bytes = CUPTI_PROFILER_BYTES(cupti_range_decode, n_dropped),
		.object = context->object,
	};
	struct cupti_range_info info = {
		.n_bytes = CUPTI_PROFILER_BYTES(cupti_range_info, n_ranges),
		.image = context->image,
		.image_bytes = context->image_bytes,
	};
	int result = torsh_cupti_profiler.RangeProfilerStop(&stop);

	if (!result)
		result = torsh_cupti_profiler.RangeProfilerDecodeData(&decode);
	if (!result)
		result = torsh_cupti_profiler.RangeProfilerGetCounterDataInfo(&info);
	*n_ranges = result || !stop.is_complete ? 0 : info.n_ranges + decode.n_dropped;
	return result;
}

void torsh_counter_range_end(const struct cupti_call *call)
{
	struct context *context = now.context;
	double values[COUNTERS_MAX];
	size_t n_ranges;
	int result = stop(context, &n_ranges);

	if (!result && n_ranges == 1)
		result = torsh_counter_set_evaluate(&context->set, context->image,
						    context->image_bytes, 0, values);
	if (!result && n_ranges == 1) {
		send_values(call, values);
		now.launch->n_samples++;
		n_failures = 0;
		COUNTER_COUNT(kernels);
	} else {
		fail("kernels could not be measured", result);
	}
	result = initialise_image(context);
	if (result)
		torsh_counters_refuse("no further kernel could be measured", result);
	torsh_counter_gate_open();
}

/* ---- exit ------------------------------------------------------------------------------------ */

void torsh_counter_ranges_forget(const void *handle)
{
	for (uint32_t i = 0; i < CONTEXTS_MAX; i++)
		if (handle && contexts[i].handle == handle)
			close_context(&contexts[i]);
}

void torsh_counter_ranges_end(void)
{
	for (uint32_t i = 0; i < CONTEXTS_MAX; i++)
		if (contexts[i].handle)
			close_context(&contexts[i]);
}
