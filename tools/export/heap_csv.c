/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The heap over time by allocation site as comma-separated values: a line for each moment and site
 * that had something live. Unknown values are empty.
 */
#include <inttypes.h>
#include <string.h>

#include "tools/export/csv_text.h"
#include "tools/export/trace.h"
#include "tools/frames/blamed_line.h"
#include "tools/memory/heap_series.h"
#include "tools/symbols/frame_text.h"

static void put_text(struct output_stream *output, const char *text)
{
	if (text)
		torsh_csv_put(output, text, strlen(text));
	torsh_stream_text(output, ",");
}

/* Put the line that a site is attributed to. */
static void put_line(struct output_stream *output, const struct allocation_site *site)
{
	struct blamed_line blamed =
		torsh_blamed_line(site->frames, site->n_frames, torsh_working_directory());
	const struct frame *frame = blamed.where == FRAME_NONE ? NULL : site->frames[blamed.where];
	char name[256];

	put_text(output, frame ? torsh_frame_name(frame, name, sizeof(name)) : NULL);
	put_text(output, frame ? frame->file : NULL);
	if (frame && frame->line > 0)
		torsh_stream_print(output, "%d", frame->line);
	torsh_stream_text(output, ",");
	put_text(output, torsh_site_operator(site));
	put_text(output, torsh_site_module(site));
}

static void put_moment(const struct heap_series *series, size_t number,
		       const struct site_amount *amounts, void *context)
{
	const struct trace *trace = context;
	const struct memory_moment *moment = &series->moments.items[number];
	struct output_stream *output = trace->output;

	if (!torsh_trace_has(trace, moment->at_ns))
		return;
	for (size_t i = 0; i < series->sites.n; i++) {
		if (!amounts[i].bytes && !amounts[i].blocks)
			continue;
		torsh_stream_print(output, "%" PRIu32 ",%" PRIu64 ",%s,",
				   series->moments.process->pid, moment->at_ns,
				   torsh_memory_moment_names[moment->kind]);
		put_text(output, moment->mark);
		if (moment->has_step)
			torsh_stream_print(output, "%" PRIu64, moment->step);
		torsh_stream_print(output, ",%zu,", i);
		put_line(output, &series->sites.items[i]);
		torsh_stream_print(output, "%" PRIu64 ",%" PRIu64 "\r\n", amounts[i].bytes,
				   amounts[i].blocks);
	}
}

static int write_series(struct trace *trace)
{
	torsh_stream_text(trace->output,
			  "process_id,at_ns,moment,mark,step,site,function,file,line,operator,"
			  "module,bytes,blocks\r\n");
	for (size_t i = 0; i < trace->n_processes; i++) {
		struct heap_series series;

		torsh_heap_series_make(&series, trace->processes[i], trace->symbols, trace->is_all);
		torsh_heap_series_each(&series, put_moment, trace);
		torsh_heap_series_free(&series);
	}
	return 0;
}

const struct trace_format torsh_trace_series = {
	.name = "series", .ending = ".series.csv", .needs_heap = true, .write = write_series};
