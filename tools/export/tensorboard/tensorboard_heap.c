/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/export/tensorboard/tensorboard_heap.h"

#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/frames/blamed_line.h"
#include "tools/frames/short_name.h"
#include "tools/memory/heap_series.h"

#define MEBIBYTE 0x1p20
#define SITES_MAX 10u
#define NS_PER_MS 1000000u

struct heap_scalars {
	struct tensorboard_file *file;
	const struct trace *trace;
	char *tags[SITES_MAX + 1]; /* by site, from 1 on */
	size_t n_sites;
	bool has_steps;
};

/* Returns "heap_MiB/01 main train.py:30"; the caller frees it. */
static char *make_tag(const struct allocation_site *site, size_t number)
{
	const char *directory = torsh_working_directory();
	struct blamed_line blamed = torsh_blamed_line(site->frames, site->n_frames, directory);
	char *function, *place, *tag;

	if (blamed.where == FRAME_NONE)
		return torsh_need_text("heap_MiB/%02zu unknown", number);
	function = torsh_short_frame(site->frames[blamed.where]);
	place = torsh_short_place(site->frames[blamed.where], directory);
	tag = torsh_need_text("heap_MiB/%02zu %s %s", number, function, place);
	free(function);
	free(place);
	return tag;
}

static void put_moment(const struct heap_series *series, size_t number,
		       const struct site_amount *amounts, void *context)
{
	struct heap_scalars *scalars = context;
	const struct memory_moment *moment = &series->moments.items[number];
	uint64_t step = scalars->has_steps ? moment->step : moment->at_ns / NS_PER_MS, others;

	if (!torsh_trace_has(scalars->trace, moment->at_ns) ||
	    moment->has_step < scalars->has_steps)
		return;
	others = moment->bytes;
	for (size_t i = 1; i <= scalars->n_sites; i++) {
		torsh_tensorboard_scalar(scalars->file, scalars->tags[i], step, moment->at_ns,
					 (double)amounts[i].bytes / MEBIBYTE);
		others -= amounts[i].bytes;
	}
	torsh_tensorboard_scalar(scalars->file, "heap_MiB/other sites", step, moment->at_ns,
				 (double)others / MEBIBYTE);
	torsh_tensorboard_scalar(scalars->file, "heap_MiB/all", step, moment->at_ns,
				 (double)moment->bytes / MEBIBYTE);
}

void torsh_tensorboard_heap(struct tensorboard_file *tensorboard, const struct trace *trace,
			    struct recorded_process *process)
{
	struct heap_scalars scalars = {.file = tensorboard, .trace = trace};
	struct heap_series series;

	torsh_heap_series_make(&series, process, trace->symbols, false);
	for (size_t i = 0; i < series.moments.n; i++)
		scalars.has_steps = scalars.has_steps || series.moments.items[i].has_step;
	while (scalars.n_sites < SITES_MAX && scalars.n_sites + 1 < series.sites.n) {
		size_t i = ++scalars.n_sites;

		scalars.tags[i] = make_tag(&series.sites.items[i], i);
	}
	torsh_heap_series_each(&series, put_moment, &scalars);
	for (size_t i = 1; i <= scalars.n_sites; i++)
		free(scalars.tags[i]);
	torsh_heap_series_free(&series);
}
