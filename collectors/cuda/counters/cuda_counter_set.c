/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Which metrics of cuda_counters.def can be measured together on a chip, and their values. */
#include "collectors/cuda/counters/cuda_counter_set.h"

#include <string.h>

#include "agent/process/text_buffer.h"
#include "agent/producer/label.h"
#include "agent/wire/event.h"
#include "collectors/cuda/counters/cuda_counter_state.h"
#include "collectors/cuda/counters/cuda_counters.h"
#include "shim/cuda/cupti.h"
#include "shim/cuda/cupti_profiler.h"
#include "shim/sys.h"

#define NAMES_MAX 3u /* in one row */

static const struct row {
	const char *field;
	enum counter_aggregate aggregate;
	uint32_t choices;
	const char *names[NAMES_MAX + 1];
} rows[] = {
#define COUNTER(field, aggregate, sets, ...) {#field, COUNTER_##aggregate, sets, {__VA_ARGS__}},
#include "collectors/cuda/counters/cuda_counters.def"
#undef COUNTER
};

#define N_ROWS (sizeof(rows) / sizeof(*rows))
_Static_assert(N_ROWS <= COUNTERS_MAX, "a set has room for all of them");

const char *torsh_counter_field(uint8_t row)
{
	return rows[row].field;
}

/* ---- one CUPTI object ------------------------------------------------------------------------ */

struct chip {
	enum cupti_profiler_type type;
	const char *name;
	const uint8_t *availability;
};

static int create_host(const struct chip *chip, void **host)
{
	struct cupti_host_create create = {
		.n_bytes = CUPTI_PROFILER_BYTES(cupti_host_create, host),
		.type = (int)chip->type,
		.chip = chip->name,
		.availability = chip->availability,
	};
	int result = torsh_cupti_profiler.ProfilerHostInitialize(&create);

	*host = result ? NULL : create.host;
	return result;
}

static void destroy_host(void *host)
{
	struct cupti_host destroy = {.n_bytes = CUPTI_PROFILER_BYTES(cupti_host, host),
				     .host = host};

	if (host)
		torsh_cupti_profiler.ProfilerHostDeinitialize(&destroy);
}

/* The unit of the metric, or NULL if the chip lacks it. */
static const char *unit_of(void *host, const char *name)
{
	struct cupti_host_metric metric = {
		.n_bytes = CUPTI_PROFILER_BYTES(cupti_host_metric, type),
		.host = host,
		.name = name,
	};

	if (torsh_cupti_profiler.ProfilerHostGetMetricProperties(&metric))
		return NULL;
	return metric.unit ? metric.unit : "";
}

/* Make the image that configures the counters, in pages of the agent. */
static int make_config(struct counter_set *set)
{
	struct cupti_host_metrics add = {
		.n_bytes = CUPTI_PROFILER_BYTES(cupti_host_metrics, n),
		.host = set->host,
		.names = set->names,
		.n = set->n,
	};
	struct cupti_host_config_size size = {
		.n_bytes = CUPTI_PROFILER_BYTES(cupti_host_config_size, image_bytes),
		.host = set->host,
	};
	struct cupti_host_config config = {
		.n_bytes = CUPTI_PROFILER_BYTES(cupti_host_config, image),
		.host = set->host,
	};
	int result = torsh_cupti_profiler.ProfilerHostConfigAddMetrics(&add);

	if (!result)
		result = torsh_cupti_profiler.ProfilerHostGetConfigImageSize(&size);
	if (result)
		return result;
	set->config_bytes = config.image_bytes = size.image_bytes;
	set->config = config.image = torsh_sys_pages(size.image_bytes);
	if (!set->config)
		return CUPTI_OUT_OF_MEMORY;
	return torsh_cupti_profiler.ProfilerHostGetConfigImage(&config);
}

static int count_passes(struct counter_set *set)
{
	struct cupti_host_passes passes = {
		.n_bytes = CUPTI_PROFILER_BYTES(cupti_host_passes, n_passes),
		.image_bytes = set->config_bytes,
		.image = set->config,
	};
	int result = torsh_cupti_profiler.ProfilerHostGetNumOfPasses(&passes);

	set->n_passes = result ? 0 : passes.n_passes;
	return result;
}

static void release(struct counter_set *set)
{
	destroy_host(set->host);
	if (set->config)
		torsh_sys_munmap(set->config, set->config_bytes);
	set->host = NULL;
	set->config = NULL;
}

/* Metrics can be added to an object, but not removed: each trial needs a new one. */
static int build(struct counter_set *set, const struct chip *chip)
{
	int result = create_host(chip, &set->host);

	if (!result)
		result = make_config(set);
	if (!result)
		result = count_passes(set);
	return result;
}

/* ---- the choice ------------------------------------------------------------------------------ */

static const char *find_name(void *host, const struct row *row)
{
	for (uint32_t i = 0; row->names[i]; i++)
		if (unit_of(host, row->names[i]))
			return row->names[i];
	return NULL;
}

/* Returns the sets whose rows are in this one. */
static uint32_t rows_of(enum counter_choice choice)
{
	return choice == FULL ? K2 | FULL : choice;
}

static size_t passes_of(enum counter_choice choice)
{
	return choice == FULL ? SIZE_MAX : choice == K2 ? 2 : 1;
}

static void try_name(struct counter_set *set, const struct chip *chip, uint32_t row,
		     const char *name, size_t passes_most)
{
	set->names[set->n] = name;
	set->rows[set->n] = (uint8_t)row;
	set->n++;
	if (build(set, chip) || !set->n_passes || set->n_passes > passes_most)
		set->n--;
	release(set);
}

int torsh_counter_set_choose(struct counter_set *set, enum counter_choice choice,
			     const char *chip_name, const uint8_t *availability)
{
	struct chip chip = {
		.type = choice == T ? CUPTI_PROFILER_OF_SAMPLES : CUPTI_PROFILER_OF_RANGES,
		.name = chip_name,
		.availability = availability,
	};
	void *host;
	int result = create_host(&chip, &host);

	*set = (struct counter_set){.type = chip.type};
	if (result)
		return result;
	for (uint32_t i = 0; i < N_ROWS; i++) {
		const char *name =
			rows[i].choices & rows_of(choice) ? find_name(host, &rows[i]) : NULL;

		if (name)
			try_name(set, &chip, i, name, passes_of(choice));
	}
	destroy_host(host);
	result = set->n ? build(set, &chip) : CUPTI_NOT_SUPPORTED;
	if (result)
		torsh_counter_set_free(set);
	return result;
}

void torsh_counter_set_free(struct counter_set *set)
{
	release(set);
	*set = (struct counter_set){0};
}

/* ---- events ---------------------------------------------------------------------------------- */

static uint32_t label_of(const char *text)
{
	return torsh_label(text, strlen(text));
}

void torsh_counter_set_send(const struct counter_set *set, uint32_t device, const char *chip,
			    uint64_t interval_ns)
{
	struct event event = {
		.id = EVENT_COUNTER_MODE,
		.counter_mode =
			{
				.mode = set->type == CUPTI_PROFILER_OF_SAMPLES
						? COUNTERS_OF_TIMELINE
						: COUNTERS_OF_OPERATORS,
				.device = device,
				.chip = label_of(chip),
				.passes = (uint32_t)set->n_passes,
				.interval_ns = interval_ns,
				.n_metrics = set->n,
			},
	};

	torsh_counters_send(&event);
	for (uint32_t i = 0; i < set->n; i++) {
		const struct row *row = &rows[set->rows[i]];
		const char *unit = unit_of(set->host, set->names[i]);

		event = (struct event){
			.id = EVENT_COUNTER_METRIC,
			.counter_metric =
				{
					.number = torsh_counter_number(device, i),
					.name = label_of(set->names[i]),
					.field = label_of(row->field),
					.unit = unit ? label_of(unit) : 0,
					.aggregate = row->aggregate,
					.device = device,
				},
		};
		torsh_counters_send(&event);
	}
}

int torsh_counter_set_evaluate(const struct counter_set *set, const uint8_t *image,
			       size_t image_bytes, size_t index, double *values)
{
	struct cupti_host_values evaluate = {
		.n_bytes = CUPTI_PROFILER_BYTES(cupti_host_values, values),
		.host = set->host,
		.image = image,
		.image_bytes = image_bytes,
		.range = index,
		.names = (const char **)(uintptr_t)set->names,
		.n = set->n,
		.values = values,
	};

	return torsh_cupti_profiler.ProfilerHostEvaluateToGpuValues(&evaluate);
}

uint32_t torsh_counter_values(const double *values, uint32_t first, uint32_t n, uint64_t *fields)
{
	uint32_t n_put = n - first < COUNTER_VALUES ? n - first : COUNTER_VALUES;

	memcpy(fields, values + first, n_put * sizeof(*fields));
	return n_put;
}
