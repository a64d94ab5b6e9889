/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "tools/base/containers/array.h"
#include "tools/ranks/kineto/kineto_event.h"

#define TIME_MAX_US 4e15 /* in ns, the difference of two is below 2^64 */
#define GZIP_BUFFER ((unsigned)128 << 10)

enum kernel_type torsh_kineto_type(const char *name)
{
	if (!strncmp(name, "nccl", 4) && strstr(name + 4, "Kernel"))
		return TYPE_COMMUNICATION;
	if (!strncmp(name, "Memcpy", 6) || !strncmp(name, "Memset", 6) || !strncmp(name, "dma", 3))
		return TYPE_MEMORY;
	return strstr(name, "Memcpy") || strstr(name, "Sync") ? TYPE_OTHER : TYPE_COMPUTATION;
}

/* ---- events ---------------------------------------------------------------------------------- */

static uint32_t put_name(struct kineto_trace *trace, const struct event_text *name)
{
	const struct hash_entry *entry =
		torsh_hash_map_put(&trace->name_of, name->text, name->n + 1, trace->n_names);

	if (entry->value == trace->n_names) {
		trace->names = torsh_array_reserve(trace->names, trace->n_names, &trace->names_room,
						   sizeof(*trace->names));
		trace->names[trace->n_names++] =
			(struct kineto_name){entry->key, torsh_kineto_type(entry->key)};
	}
	return (uint32_t)entry->value;
}

static bool is_work(const char *category)
{
	static const char *const categories[] = {"kernel", "Kernel",	 "gpu_memset",	   "Memset",
						 "Memcpy", "gpu_memcpy", "mtia_ccp_events"};

	for (size_t i = 0; i < sizeof(categories) / sizeof(*categories); i++) {
		if (!strcmp(category, categories[i]))
			return true;
	}
	return false;
}

static void add_kernel(struct kineto_trace *trace, const struct kineto_event *event, uint32_t index,
		       bool is_launched)
{
	bool is_of_device = is_work(event->category.text);

	if (is_of_device && event->correlation != KINETO_NO_CORRELATION)
		torsh_kineto_add_collective(trace, event);
	trace->kernels = torsh_array_reserve(trace->kernels, trace->n_kernels, &trace->kernels_room,
					     sizeof(*trace->kernels));
	trace->kernels[trace->n_kernels++] = (struct kineto_kernel){
		.start_us = event->start_us,
		.dur_us = event->dur_us,
		.stream = event->stream,
		.correlation = event->correlation,
		.index = index,
		.name = put_name(trace, &event->name),
		.is_work = is_of_device,
		.is_launched = is_launched,
	};
}

static void add_launch(struct kineto_trace *trace, const struct kineto_event *event, uint32_t index)
{
	trace->launches = torsh_array_reserve(trace->launches, trace->n_launches,
					      &trace->launches_room, sizeof(*trace->launches));
	trace->launches[trace->n_launches++] =
		(struct kineto_launch){event->correlation, event->start_us, index};
}

/* HTA takes the last one that began, on the host or, without a stream, of a device. */
static void add_step(struct kineto_trace *trace, const struct kineto_event *event)
{
	const char *number = strchr(event->name.text, '#');

	if (!trace->has_step || event->start_us > trace->last_step_us)
		trace->last_step_us = event->start_us;
	trace->has_step = true;
	if (!number || strncmp(event->name.text, "ProfilerStep", 12) ||
	    !strcmp(event->category.text, "gpu_user_annotation"))
		return;
	trace->steps = torsh_array_reserve(trace->steps, trace->n_steps, &trace->steps_room,
					   sizeof(*trace->steps));
	trace->steps[trace->n_steps++] = (struct kineto_step){event->start_us, event->dur_us,
							      strtoull(number + 1, NULL, 10)};
}

static void add_bounds(struct kineto_trace *trace, const struct kineto_event *event)
{
	double end = event->start_us + event->dur_us;

	if (trace->first_us > event->start_us)
		trace->first_us = event->start_us;
	if (trace->last_us < end)
		trace->last_us = end;
}

/* Returns whether it can be a time: NaN and what is beyond a century can't. */
static bool is_time(double us)
{
	return us > -TIME_MAX_US && us < TIME_MAX_US;
}

static void add_event(struct kineto_trace *trace, struct kineto_event *event)
{
	uint32_t index = (uint32_t)trace->n_events++;
	bool is_on_stream = event->stream != KINETO_NO_STREAM, is_launched;
	const char *name = event->name.n ? event->name.text : "";

	trace->has_fractions |= event->has_fraction || !event->has_start;
	if (!event->has_dur || !event->has_category || !event->has_start ||
	    !is_time(event->start_us) || !is_time(event->dur_us) ||
	    !strcmp(event->category.text, "Trace"))
		return;
	add_bounds(trace, event);
	if (index == 0) {
		trace->has_first_event = true;
		trace->first_event_us = event->start_us;
	}
	if (!event->name.text)
		return;
	is_launched = event->stream >= 0 && event->correlation >= 0;
	if (strstr(name, "ProfilerStep")) {
		torsh_hash_map_put_text(&trace->step_names, name, 0);
		if (!is_launched)
			add_step(trace, event);
	}
	if (is_on_stream)
		add_kernel(trace, event, index, is_launched);
	else if (event->correlation != KINETO_NO_CORRELATION && strcmp(name, "Event Sync") &&
		 strcmp(name, "Context Sync"))
		add_launch(trace, event, index);
}

static void read_events(struct kineto_trace *trace, struct json_reader *json)
{
	struct kineto_event event = {0};
	bool is_open = false;

	if (torsh_json_enter(json, JSON_ARRAY)) {
		while (torsh_json_item(json, &is_open) && torsh_kineto_event_read(json, &event))
			add_event(trace, &event);
	}
	torsh_kineto_event_free(&event);
}

/* ---- what describes the trace ---------------------------------------------------------------- */

static bool read_count(struct json_reader *json, double most, double *value)
{
	bool is_whole;

	if (torsh_json_peek(json) != JSON_NUMBER)
		return torsh_json_skip(json) && false;
	return torsh_json_number(json, value, &is_whole) && *value >= 0 && *value <= most;
}

static void read_distributed(struct kineto_trace *trace, struct json_reader *json)
{
	struct json_slice name;
	bool is_open = false;
	double value;

	if (torsh_json_peek(json) != JSON_OBJECT) {
		torsh_json_skip(json);
		return;
	}
	torsh_json_enter(json, JSON_OBJECT);
	while (torsh_json_member(json, &is_open, &name)) {
		if (torsh_json_is(name, "rank")) {
			trace->has_rank = read_count(json, UINT32_MAX - 1, &value);
			trace->rank = trace->has_rank ? (uint32_t)value : 0;
		} else if (torsh_json_is(name, "world_size")) {
			if (read_count(json, UINT32_MAX - 1, &value))
				trace->world_size = (uint32_t)value;
		} else {
			torsh_json_skip(json);
		}
	}
}

/* Returns whether it is a trace: it has traceEvents. */
static bool read_trace(struct kineto_trace *trace, struct json_reader *json)
{
	bool is_open = false, has_events = false;
	struct json_slice name;
	double value;

	if (!torsh_json_enter(json, JSON_OBJECT))
		return false;
	while (torsh_json_member(json, &is_open, &name)) {
		if (torsh_json_is(name, "traceEvents")) {
			has_events = true;
			read_events(trace, json);
		} else if (torsh_json_is(name, "distributedInfo")) {
			read_distributed(trace, json);
		} else if (torsh_json_is(name, "baseTimeNanoseconds")) {
			if (read_count(json, 9e18, &value))
				trace->base_ns = (uint64_t)value;
		} else {
			torsh_json_skip(json);
		}
	}
	torsh_json_end(json);
	return has_events;
}

/* ---- launches -------------------------------------------------------------------------------- */

static int compare_launches(const void *a, const void *b)
{
	const struct kineto_launch *x = a, *y = b;

	if (x->correlation != y->correlation)
		return x->correlation < y->correlation ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

const struct kineto_launch *torsh_kineto_launches(const struct kineto_trace *trace,
						  int64_t correlation, size_t *n)
{
	size_t low = 0, high = trace->n_launches, end;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (trace->launches[middle].correlation < correlation)
			low = middle + 1;
		else
			high = middle;
	}
	for (end = low; end < trace->n_launches && trace->launches[end].correlation == correlation;
	     end++)
		;
	*n = end - low;
	return *n ? &trace->launches[low] : NULL;
}

/* ---- the file -------------------------------------------------------------------------------- */

bool torsh_kineto_read_from(struct kineto_trace *trace, const char *path,
			    size_t (*fill)(void *, char *, size_t), void *source, char *error,
			    size_t n_error)
{
	struct json_reader json;
	bool is_trace, is_read;

	*trace = (struct kineto_trace){.path = path, .first_us = 1e300, .last_us = -1e300};
	torsh_json_reader_start(&json, fill, source);
	is_trace = read_trace(trace, &json);
	is_read = !json.fault && is_trace;
	if (json.fault)
		snprintf(error, n_error, "%s: %s, at byte %" PRIu64 " of its text", path,
			 json.fault, json.fault_at);
	else if (!is_trace)
		snprintf(error, n_error,
			 "%s: no trace of PyTorch's profiler: it has no traceEvents", path);
	torsh_json_reader_free(&json);
	if (trace->n_launches)
		qsort(trace->launches, trace->n_launches, sizeof(*trace->launches),
		      compare_launches);
	return is_read;
}

static size_t fill_from_gzip(void *source, char *bytes, size_t n)
{
	int n_read = gzread(source, bytes, n > INT32_MAX ? INT32_MAX : (unsigned)n);

	return n_read > 0 ? (size_t)n_read : 0;
}

bool torsh_kineto_read(struct kineto_trace *trace, const char *path, char *error, size_t n_error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), status, number;
	gzFile file = fd < 0 ? NULL : gzdopen(fd, "rb");
	const char *why;
	bool is_read;

	*trace = (struct kineto_trace){.path = path};
	if (!file) {
		snprintf(error, n_error, "%s: %s", path, strerror(errno));
		return false;
	}
	gzbuffer(file, GZIP_BUFFER);
	is_read = torsh_kineto_read_from(trace, path, fill_from_gzip, file, error, n_error);
	why = gzerror(file, &number);
	/* What the archive lacks is the reason, not where the text ends because of that. */
	if (number == Z_DATA_ERROR)
		snprintf(error, n_error, "%s: damaged: %s", path, why);
	else if (number == Z_ERRNO)
		snprintf(error, n_error, "%s: %s", path, strerror(errno));
	status = gzclose_r(file);
	if (status == Z_BUF_ERROR || number == Z_BUF_ERROR)
		snprintf(error, n_error, "%s: truncated: it ends in the middle of its gzip data",
			 path);
	return is_read && number != Z_DATA_ERROR && status != Z_BUF_ERROR && number != Z_BUF_ERROR;
}

void torsh_kineto_free(struct kineto_trace *trace)
{
	free(trace->kernels);
	free(trace->launches);
	free(trace->steps);
	free(trace->names);
	torsh_hash_map_free(&trace->name_of);
	torsh_hash_map_free(&trace->step_names);
	free(trace->collectives);
	torsh_rank_collectives_free(&trace->texts);
	*trace = (struct kineto_trace){0};
}
