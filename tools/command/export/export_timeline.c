/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/export/export_timeline.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/base/private_file.h"

static const struct trace_format *const formats[] = {
#define STACKS(name)
#define TIMELINE(name) &torsh_trace_##name,
#define FORMAT(name, holds, ...) holds(name)
#include "agent/wire/formats.def"
#undef FORMAT
#undef TIMELINE
#undef STACKS
};

const struct trace_format *torsh_trace_format(const char *name)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		if (strcmp(formats[i]->name, name) == 0)
			return formats[i];
	}
	return NULL;
}

/* Restrict the window to the selected steps of all processes. */
static void choose_steps(struct trace *trace, const struct trace_window *window)
{
	uint64_t from_ns = UINT64_MAX, to_ns = 0;

	for (size_t i = 0; i < trace->prepass->n; i++) {
		const struct steps *steps = &trace->prepass->items[i].steps;

		for (size_t k = 0; k < steps->n; k++) {
			const struct step *step = &steps->items[k];

			if (step->number < window->first_step || step->number > window->last_step)
				continue;
			from_ns = step->start_ns < from_ns ? step->start_ns : from_ns;
			to_ns = step->end_ns > to_ns ? step->end_ns : to_ns;
		}
	}
	if (from_ns >= to_ns)
		torsh_die("no step in %s has such a number; torsh steps lists them",
			  trace->recording->path);
	trace->is_of_steps = true;
	trace->from_ns = from_ns > trace->from_ns ? from_ns : trace->from_ns;
	trace->to_ns = to_ns < trace->to_ns ? to_ns : trace->to_ns;
}

/* End the program if a file of that format would be empty. */
static void check_content(const struct trace *trace, const struct trace_format *format)
{
	const struct prepass *prepass = trace->prepass;
	uint64_t n_tensors = 0;

	for (size_t i = 0; i < prepass->n; i++)
		n_tensors += prepass->items[i].n_tensors;
	if (format->needs >= TRACE_NEEDS_EVENTS && !prepass->counts.n_events &&
	    !(format->has_samples && prepass->counts.n_samples))
		torsh_die(
			"there is no timeline to export, which %s is made of: no operator, range or mark was recorded",
			format->name);
	if (format->needs == TRACE_NEEDS_TENSORS && !n_tensors)
		torsh_die(
			"there are no tensors to export, which %s is made of: PyTorch allocated nothing, or "
			"TORSH_PROFILER_PROFILE_MEMORY was 0",
			format->name);
}

void torsh_timeline_choose(struct trace *trace, const struct trace_format *format,
			   const struct trace_window *window)
{
	check_content(trace, format);
	if (window->has_steps)
		choose_steps(trace, window);
}

static void export_one(const struct trace *wanted, const struct trace_format *format,
		       const struct trace_window *window)
{
	struct trace trace = *wanted;
	struct prepass prepass;
	int rc;

	torsh_prepass_make(&prepass, trace.recording, trace.processes, trace.n_processes);
	if (prepass.counts.n_too_deep)
		fprintf(stderr,
			"torsh: %" PRIu64
			" calls are left out: %u others were open on their threads when they began\n",
			prepass.counts.n_too_deep, SPANS_DEPTH_MAX);
	trace.prepass = &prepass;
	trace.is_all = window->is_all;
	trace.from_ns = window->from_ns;
	trace.to_ns = window->to_ns;
	torsh_timeline_choose(&trace, format, window);
	rc = format->needs_path ? format->write(&trace) : torsh_trace_to_file(&trace, format);
	if (rc < 0)
		torsh_die("can't write %s: %s", trace.path, strerror(-rc));
	torsh_prepass_free(&prepass);
}

/* ---- a file for each rank -------------------------------------------------------------------- */

struct ranks {
	uint32_t *numbers; /* unique, ascending */
	size_t n, n_room;
	size_t n_without; /* number of processes without one */
};

static int compare_numbers(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void find_ranks(struct ranks *ranks, const struct reading *reading)
{
	size_t n = 0;

	*ranks = (struct ranks){0};
	for (size_t i = 0; i < reading->n_processes; i++) {
		ranks->numbers = torsh_array_reserve(ranks->numbers, ranks->n, &ranks->n_room,
						     sizeof(*ranks->numbers));
		if (torsh_recording_rank(reading->processes[i]->rank, &ranks->numbers[ranks->n]))
			ranks->n++;
		else
			ranks->n_without++;
	}
	if (ranks->n)
		qsort(ranks->numbers, ranks->n, sizeof(*ranks->numbers), compare_numbers);
	for (size_t i = 0; i < ranks->n; i++) {
		if (!n || ranks->numbers[n - 1] != ranks->numbers[i])
			ranks->numbers[n++] = ranks->numbers[i];
	}
	ranks->n = n;
}

static bool is_directory(const char *path)
{
	struct stat status;
	size_t n = strlen(path);

	return path[n - (n > 0)] == '/' || (stat(path, &status) == 0 && S_ISDIR(status.st_mode));
}

/*
 * Returns where a name's extension begins: "trace|.json.gz"; the format's own may have several
 * dots.
 */
static size_t find_ending(const char *path, const struct trace_format *format)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot;
	size_t n = strlen(path), n_ending = strlen(format->ending);

	if (n > n_ending && strcmp(path + n - n_ending, format->ending) == 0)
		return n - n_ending;
	if (n > 3 && strcmp(path + n - 3, ".gz") == 0)
		n -= 3;
	dot = memrchr(name, '.', n - (size_t)(name - path));
	return dot ? (size_t)(dot - path) : n;
}

/*
 * Returns the path of a rank's file, which the caller frees. Creates the directory if it doesn't
 * exist.
 */
static char *path_of_rank(const char *path, const struct trace_format *format, uint32_t rank)
{
	const char *place = strstr(path, "%r");
	size_t n = strlen(path);
	int rc;

	if (place)
		return torsh_need_text("%.*s%" PRIu32 "%s", (int)(place - path), path, rank,
				       place + 2);
	if (!is_directory(path)) {
		n = find_ending(path, format);
		return torsh_need_text("%.*s.rank-%" PRIu32 "%s", (int)n, path, rank, path + n);
	}
	rc = torsh_private_directory(path);
	if (rc)
		torsh_die("can't write into %s: %s", path,
			  rc == -EPERM ? "it belongs to another user" : strerror(-rc));
	while (n > 1 && path[n - 1] == '/')
		n--;
	return torsh_need_text("%.*s/rank-%" PRIu32 "%s", (int)n, path, rank, format->ending);
}

static void export_rank(const struct trace *whole, const struct trace_format *format,
			const struct trace_window *window, const struct reading *reading,
			uint32_t rank)
{
	struct recorded_process **processes =
		torsh_need_items(NULL, 0, reading->n_processes, sizeof(*processes));
	struct trace trace = *whole;
	char *path = path_of_rank(whole->path, format, rank);
	uint32_t number;

	trace.processes = processes;
	trace.n_processes = 0;
	for (size_t i = 0; i < reading->n_processes; i++) {
		if (torsh_recording_rank(reading->processes[i]->rank, &number) && number == rank)
			processes[trace.n_processes++] = reading->processes[i];
	}
	trace.path = path;
	export_one(&trace, format, window);
	free(path);
	free(processes);
}

/* Write a file per rank; without a launcher there is only rank 0. */
static void export_ranks(struct trace *trace, const struct trace_format *format,
			 const struct trace_window *window, const struct reading *reading,
			 const struct ranks *ranks)
{
	char *path;

	if (ranks->n && ranks->n_without)
		torsh_warn("%zu processes have no rank and are in no file; --pid N exports one",
			   ranks->n_without);
	for (size_t i = 0; i < ranks->n; i++)
		export_rank(trace, format, window, reading, ranks->numbers[i]);
	if (ranks->n)
		return;
	path = path_of_rank(trace->path, format, 0);
	trace->path = path;
	export_one(trace, format, window);
	free(path);
}

void torsh_timeline_export(const struct trace_format *format, const struct trace_window *window,
			   const char *path, const struct reading *reading)
{
	struct trace trace = {
		.recording = reading->recording,
		.processes = reading->processes,
		.n_processes = reading->n_processes,
		.symbols = reading->symbols,
		.suppress = reading->suppress,
		.path = path,
		.model_name = window->model_name,
		.device_name = window->device_name,
	};
	bool is_of_ranks =
		path && !format->is_directory && !window->is_by_rank && is_directory(path);
	struct ranks ranks;

	find_ranks(&ranks, reading);
	if (is_of_ranks || (path && (strstr(path, "%r") || (window->is_by_rank && ranks.n > 1)))) {
		export_ranks(&trace, format, window, reading, &ranks);
	} else {
		if (ranks.n > 1 && format->is_of_one_rank)
			torsh_warn(
				"%zu ranks go into one file, which readers take for one: --by-rank writes one for "
				"each",
				ranks.n);
		export_one(&trace, format, window);
	}
	free(ranks.numbers);
}
