/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <inttypes.h>
#include <stdio.h>

#include "tools/base/size.h"
#include "tools/command/peak/moments_view.h"
#include "tools/frames/folded_stack.h"
#include "tools/report/sites/site_rows.h"
#include "tools/report/text.h"

#define MOMENT_TEXT_BYTES 300
#define AGE_TEXT_BYTES 80

/* Returns "the mark "loaded", 1.20 s after the recording began". */
static const char *put_moment(const struct memory_moment *moment, char *out)
{
	char at[SIZE_TEXT_BYTES], resident[SIZE_TEXT_BYTES], what[MOMENT_TEXT_BYTES / 2] = "";

	torsh_size_duration(moment->at_ns, at);
	switch (moment->kind) {
	case MEMORY_AT_START:
	case MEMORY_AT_PEAK:
	case MEMORY_AT_END:
		snprintf(what, sizeof(what), "the %s, ", torsh_memory_moment_names[moment->kind]);
		break;
	case MEMORY_AT_MARK:
		snprintf(what, sizeof(what), "the mark \"%.100s\", ",
			 moment->mark ? moment->mark : "");
		break;
	case MEMORY_AT_RSS:
		snprintf(what, sizeof(what), "the highest sample of the resident set, %s, ",
			 torsh_size_human(moment->resident_bytes, resident));
		break;
	case MEMORY_AT_JOINT:
		snprintf(what, sizeof(what), "the heap and devices together at most, ");
		break;
	case MEMORY_AT_WINDOW:
		snprintf(what, sizeof(what), "the highest moment of a window of the program, ");
		break;
	case MEMORY_AT_STEP:
		if (moment->has_step)
			snprintf(what, sizeof(what), "the end of step %" PRIu64 ", ", moment->step);
		break;
	default:
		break;
	}
	snprintf(out, MOMENT_TEXT_BYTES, "%s%s after the recording began", what, at);
	return out;
}

static void print_distance(const struct moment_request *request, const struct memory_moment *moment)
{
	uint64_t at_ns = moment->at_ns, asked = request->number;
	char text[SIZE_TEXT_BYTES];

	if (request->kind == MOMENT_OF_TIME && asked != at_ns)
		printf("    the nearest moment that was kept, %s %s than requested\n",
		       torsh_size_duration(asked > at_ns ? asked - at_ns : at_ns - asked, text),
		       at_ns > asked ? "later" : "earlier");
	if (request->kind == MOMENT_OF_STEP && asked != moment->step)
		printf("    the nearest end of a step that was kept; step %" PRIu64
		       " was requested\n",
		       asked);
}

/* Samples miss what lies between them: the kernel's own figure doesn't. */
static void print_resident(const struct process_moments *of)
{
	const struct recorded_process *process = of->all.process;
	char most[SIZE_TEXT_BYTES];

	if (of->at->kind == MEMORY_AT_RSS && process->has_rss_peak)
		printf("    the highest resident set between samples, too: %s (%s)\n",
		       torsh_size_human(process->rss_peak_bytes, most), process->rss_peak_source);
}

static void print_joint(const struct process_moments *of)
{
	const struct device_joint *joint = of->devices ? &of->devices->joint : NULL;
	char all[SIZE_TEXT_BYTES], heap[SIZE_TEXT_BYTES], at[SIZE_TEXT_BYTES];

	if (!joint || !joint->is_known)
		return;
	printf("    the heap and all devices together had %s at %s, the heap %s of it%s\n",
	       torsh_size_human(joint->bytes, all), torsh_size_duration(joint->at.at_ns, at),
	       torsh_size_human(joint->heap_bytes, heap),
	       torsh_moments_is_joint(of) ? ": exactly this moment" : "");
}

/* Print a line for each process that is shown. */
static void print_processes(const struct moments_view *view)
{
	const struct moments_request *request = view->request;

	for (size_t i = 0; i < view->reading->n_processes; i++) {
		const struct process_moments *of = &view->items[i];
		const struct recorded_process *process = of->all.process;
		char at[MOMENT_TEXT_BYTES], since[MOMENT_TEXT_BYTES], bytes[SIZE_TEXT_BYTES];
		struct moment_request at_request;

		if (!of->at)
			continue;
		printf("  %s (pid %" PRIu32 "): %s at %s\n", torsh_recording_program_name(process),
		       process->pid, torsh_size_human(of->at->bytes, bytes),
		       put_moment(of->at, at));
		at_request = torsh_moments_request_of(view, of);
		print_joint(of);
		print_distance(&at_request, of->at);
		print_resident(of);
		if (of->since) {
			printf("    less %s at %s\n", torsh_size_human(of->since->bytes, bytes),
			       put_moment(of->since, since));
			print_distance(&request->since, of->since);
		}
		if (!of->all.n_kept)
			puts("    no moments were kept besides the start, the peak and the end: an older version "
			     "recorded this, or the writer ended early");
		if (of->all.n_damaged)
			printf("    %zu moments are left out: the recording lacks some of their stacks\n",
			       of->all.n_damaged);
	}
}

/* Returns ", and at least 10 s old". */
static const char *put_age(const struct moments_request *request, char *out)
{
	char text[SIZE_TEXT_BYTES];

	*out = 0;
	if (request->has_age && request->age.n_steps)
		snprintf(out, AGE_TEXT_BYTES, ", from before the last %s",
			 torsh_size_counted(request->age.n_steps, "step", text));
	else if (request->has_age)
		snprintf(out, AGE_TEXT_BYTES, ", at least %s old",
			 torsh_size_duration(request->age.ns, text));
	return out;
}

static void print_heading(const struct moments_view *view)
{
	char age[AGE_TEXT_BYTES];
	char bytes[SIZE_TEXT_BYTES], blocks[64];
	bool is_less = view->is_change && (int64_t)view->bytes < 0;
	uint64_t size = is_less ? 0 - view->bytes : view->bytes;

	torsh_size_exact(size, bytes);
	if (view->is_change)
		torsh_text_heading(stdout, "the heap changed by %s%s", is_less ? "-" : "+", bytes);
	else
		torsh_text_heading(stdout, "%s in %s were live%s%s", bytes,
				   torsh_text_blocks(view->blocks, blocks),
				   view->is_window ? " at the highest moment of the window" : "",
				   put_age(view->request, age));
}

static void print_window(const struct moments_view *view)
{
	const struct window_sum *highest;
	char bytes[SIZE_TEXT_BYTES], at[SIZE_TEXT_BYTES];

	if (!view->is_window || !view->chosen)
		return;
	highest = &view->chosen->highest;
	if (view->has_peak)
		puts("    exact: the peak of the process is in this window");
	else if (highest->is_exact && highest->bytes == view->bytes)
		puts("    exact: the heap was never larger in this window");
	else if (highest->is_known)
		printf("    %s %s at %s, but who held that was not kept\n",
		       highest->is_exact ? "the heap's highest in this window was exactly"
					 : "the heap had at least",
		       torsh_size_exact(highest->bytes, bytes),
		       torsh_size_duration(highest->at_ns, at));
	else if (view->curve_bytes > view->bytes)
		printf("    the heap had %s at %s, but who held that was not kept\n",
		       torsh_size_human(view->curve_bytes, bytes),
		       torsh_size_duration(view->curve_ns, at));
	else
		puts("    of the moments that were kept; between two of them the heap may have been larger");
}

static void print_sites(const struct moments_view *view, const struct allocation_sites *sites,
			size_t n, uint64_t whole_bytes, const char *heading)
{
	const struct read_options *options = view->options;

	torsh_site_rows_print(stdout, &(struct site_rows){
					      .heading = heading,
					      .items = sites->items,
					      .n = n,
					      .whole_bytes = whole_bytes,
					      .is_change = view->is_change,
					      .with_pid = view->reading->n_processes > 1,
					      .max_rows = options->has_depth ? 0 : FOLDED_ROWS,
				      });
	torsh_text_more(stdout, sites->n - n);
}

static void print_undecided(const struct moments_view *view)
{
	char bytes[SIZE_TEXT_BYTES], blocks[64];

	if (!view->undecided.n)
		return;
	torsh_text_heading(
		stdout,
		"undecided: up to %s in up to %s, of which the recording doesn't have the ages",
		torsh_size_human(view->undecided_bytes, bytes),
		torsh_text_blocks(view->undecided_blocks, blocks));
	print_sites(view, &view->undecided, view->n_undecided, view->undecided_bytes, "UP TO");
}

void torsh_moments_text(const struct moments_view *view)
{
	const struct reading *reading = view->reading;
	uint64_t blocks, grown;
	char bytes[SIZE_TEXT_BYTES];

	torsh_text_missing(stdout, reading->recording, reading->processes, reading->n_processes);
	print_heading(view);
	print_processes(view);
	print_window(view);
	torsh_text_losses(stdout, reading->processes, reading->n_processes,
			  view->options->is_verbose);
	torsh_sites_sum(&view->held, &blocks, &grown);
	print_sites(view, &view->held, view->n_held, grown, view->is_change ? "GREW" : "HELD");
	print_undecided(view);
	if (!view->is_change)
		return;
	if (!view->held.n)
		puts("Nothing grew.");
	if (view->shrunk.n)
		torsh_text_heading(stdout, "%s were given back",
				   torsh_size_human(view->shrunk_bytes, bytes));
	print_sites(view, &view->shrunk, view->n_shrunk, view->shrunk_bytes, "GIVEN BACK");
}
