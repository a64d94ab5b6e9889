/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh peak: what held memory when the heap was largest, of one process or of all together. */
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/command/arguments.h"
#include "tools/command/command.h"
#include "tools/command/reading.h"
#include "tools/command/peak/peak_moments.h"
#include "tools/command/peak/peak_view.h"
#include "tools/frames/folded_stack.h"
#include "tools/memory/leaks/peak_holders.h"

#define TEXT_LIMIT 20
#define TEXT_LIMIT_MAPPED 5

static const char doc[] =
	"Show which stacks held memory at the moment when the heap was largest.\v"
	"The moment is exact: the requested sizes, summed over all live blocks of all "
	"processes, were never higher. With --pid it is the highest moment of that process alone; of the processes of one "
	"--rank the one with the highest peak is shown. With --device: the holders of CUDA memory when it was "
	"largest, of a device (cuda:0), managed, pinned, registered or imported, the driver's figure at that moment, and the "
	"allocations that it refused; all: when the heap and all devices together were largest. Of several processes the one with the highest peak is shown, "
	"and when all that used the same device had most of it together. Of a device also the owners of all that the driver counts "
	"as used then: tensors by kind, the allocator's free memory, libraries, the context.\n\n"
	"With --at, --step or --mark: what was live at another moment. Besides the start, the peak and the end these are "
	"up to 64 regular times, 64 ends of steps and 64 marks; the nearest one is shown, with its distance. At rss-peak: when most "
	"was resident, as sampled; at joint-peak: when the heap and all devices together had most. With --from or "
	"--to: the highest of the moments between, which is exact if the peak is among them. With --since: what grew from one "
	"moment to another one, and what was given back. With --device, --at, --step and --mark are exact.";

enum {
	KEY_DEVICE = 0x2000,
	KEY_AT,
	KEY_STEP,
	KEY_MARK,
	KEY_SINCE,
	KEY_FROM,
	KEY_TO,
	KEY_STEPS,
	KEY_REGION,
	KEY_ALIVE_FOR
};

static const struct argp_option own_options[] = {
	{"device", KEY_DEVICE, "NAME", 0,
	 "memory of this device: cuda:0, managed, pinned, registered, imported, or all", 0},
	{"at", KEY_AT, "MOMENT", 0,
	 "what was live at a time (1.5s, 200ms since the recording began), at start, peak, rss-peak, joint-peak or end, or at a mark of that name",
	 0},
	{"step", KEY_STEP, "N", 0, "what was live at the end of this step", 0},
	{"mark", KEY_MARK, "NAME", 0, "what was live at the first mark of that name", 0},
	{"since", KEY_SINCE, "MOMENT", 0, "what changed since then, up to --to or the end", 0},
	{"from", KEY_FROM, "MOMENT", 0, "the highest moment from here on", 0},
	{"to", KEY_TO, "MOMENT", 0, "up to here", 0},
	{"steps", KEY_STEPS, "A[-B]", 0, "the highest moment in these steps", 0},
	{"region", KEY_REGION, "NAME", 0, "the highest moment in the ranges of that name", 0},
	{"alive-for", KEY_ALIVE_FOR, "AGE", 0,
	 "of what was live then, or at the peak, what was that old: 10s, or 3steps: from before the last 3",
	 0},
	{0},
};

struct peak_options {
	const char *device;
	struct moments_request moments;
};

static void check_peak(const struct peak_options *own, struct argp_state *state)
{
	const struct moments_request *moments = &own->moments;

	if (moments->has_age && moments->since.kind)
		argp_error(state, "--since shows changes, which have no age");
	if (own->device && (moments->since.kind || moments->from.kind || moments->to.kind ||
			    moments->window.is_some || moments->has_age))
		argp_error(state, "--device shows single moments: by --at, --step or --mark");
	if (own->device && strcmp(own->device, "all") == 0 && moments->at.kind)
		argp_error(state, "--device all shows the peak only");
	if (moments->at.kind && (moments->since.kind || moments->to.kind))
		argp_error(state, "--at, --step and --mark stand alone");
	if ((moments->since.kind || moments->at.kind) &&
	    (moments->from.kind || moments->window.is_some))
		argp_error(
			state,
			"--from, --steps and --region choose the highest moment: no other can be chosen");
}

static error_t parse_peak(int key, char *argument, struct argp_state *state)
{
	struct peak_options *own = state->input;
	struct moments_request *moments = &own->moments;

	switch (key) {
	case KEY_DEVICE:
		own->device = argument;
		return 0;
	case KEY_AT:
		torsh_moment_request_parse(&moments->at, argument);
		return 0;
	case KEY_STEP:
		moments->at = (struct moment_request){
			.kind = MOMENT_OF_STEP,
			.number = torsh_argument_number(state, "step", argument)};
		return 0;
	case KEY_MARK:
		moments->at = (struct moment_request){.kind = MOMENT_OF_NAME, .name = argument};
		return 0;
	case KEY_SINCE:
		torsh_moment_request_parse(&moments->since, argument);
		return 0;
	case KEY_FROM:
		torsh_moment_request_parse(&moments->from, argument);
		return 0;
	case KEY_TO:
		torsh_moment_request_parse(&moments->to, argument);
		return 0;
	case KEY_STEPS:
		torsh_argument_steps(state, argument, &moments->window.steps.first,
				     &moments->window.steps.last);
		moments->window.steps.is_some = moments->window.is_some = true;
		return 0;
	case KEY_REGION:
		moments->window.region = argument;
		moments->window.is_some = true;
		return 0;
	case KEY_ALIVE_FOR:
		torsh_argument_age(state, "alive-for", argument, &moments->age.ns,
				   &moments->age.n_steps);
		moments->has_age = true;
		return 0;
	case ARGP_KEY_END:
		check_peak(own, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct recorded_process *choose_mapper(const struct reading *reading)
{
	const struct recorded_process *most = reading->processes[0];

	for (size_t i = 1; i < reading->n_processes; i++) {
		if (reading->processes[i]->vm.peak_bytes > most->vm.peak_bytes)
			most = reading->processes[i];
	}
	return most;
}

size_t torsh_peak_shown(const struct peak_view *view, struct recorded_process *one[1],
			struct recorded_process *const **shown)
{
	*shown = view->peak.process ? one : view->reading->processes;
	one[0] = (struct recorded_process *)view->peak.process;
	return view->peak.process ? 1 : view->reading->n_processes;
}

/* CPython's arenas first, because they hold most Python objects; otherwise in the same order. */
static void put_arenas_first(struct peak_view *view)
{
	struct allocation_sites *sites = &view->mapped;
	struct allocation_site *all = torsh_need_items(NULL, 0, sites->n, sizeof(*all));
	size_t n = 0;

	for (int is_arena = 1; is_arena >= 0; is_arena--)
		for (size_t i = 0; i < view->n_mapped; i++)
			if (sites->items[i].is_arena == is_arena)
				all[n++] = sites->items[i];
	for (; n < sites->n; n++)
		all[n] = sites->items[n];
	free(sites->items);
	sites->items = all;
	sites->n_room = sites->n;
}

/* In JSON, and where stacks are wanted as they are, the sites of imports are among the others. */
static void collect_heap(struct peak_view *view, const struct read_options *options)
{
	const struct reading *reading = view->reading;
	struct peak_holders holders = {.sites = view->heap};
	struct sites_source source;

	if (!view->device.name && (options->is_json || options->is_verbose || options->has_depth)) {
		source = torsh_peak_source(&view->peak, reading->recording);
		torsh_options_collect(options, &view->heap, &source, true, reading->symbols);
		return;
	}
	if (view->device.name) {
		torsh_peak_device_collect(view);
	} else {
		torsh_peak_holders_find(&holders, &view->peak, reading->recording,
					reading->symbols);
		view->heap = holders.sites;
		view->imports = holders.imports;
	}
	torsh_sites_merge_stacks(&view->heap, reading->symbols);
	torsh_sites_merge_alike(&view->heap, reading->symbols);
}

static void show_peak(struct read_options *options, struct reading *reading,
		      const struct peak_options *own)
{
	struct peak_view view = {.reading = reading, .device.name = own->device};

	if (view.device.name) {
		torsh_peak_device_choose(&view);
		if (!view.device.is_all)
			torsh_peak_device_moment(&view, &own->moments.at);
	} else {
		view.peak = torsh_peak_choose(reading->recording, reading->processes,
					      reading->n_processes);
		view.variance = torsh_peak_variance(&view.peak, reading->recording);
	}
	view.mapper = view.peak.process ? view.peak.process : choose_mapper(reading);
	view.heap.depth = view.mapped.depth = options->depth;
	view.heap.view = view.mapped.view = options->view;
	view.heap.is_unmerged = view.mapped.is_unmerged = options->has_depth;
	collect_heap(&view, options);
	torsh_sites_collect(&view.mapped, view.mapper, SITES_MAPPED);
	torsh_sites_mark_arenas(&view.mapped, reading->symbols);
	torsh_sites_merge_stacks(&view.mapped, reading->symbols);
	torsh_sites_merge_alike(&view.mapped, reading->symbols);
	if (options->is_json)
		torsh_reading_end_views(reading);
	view.is_verbose = options->is_verbose;
	view.max_rows = options->has_depth ? 0 : FOLDED_ROWS;
	for (size_t i = 0; i < view.mapped.n; i++)
		view.arena_bytes += view.mapped.items[i].is_arena ? view.mapped.items[i].bytes : 0;
	view.n_heap = torsh_options_choose(options, &view.heap, reading->symbols, TEXT_LIMIT);
	view.n_mapped =
		torsh_options_choose(options, &view.mapped, reading->symbols, TEXT_LIMIT_MAPPED);
	if (options->is_json) {
		torsh_peak_json(&view);
	} else {
		put_arenas_first(&view);
		torsh_peak_text(&view);
	}
	torsh_sites_free(&view.heap);
	torsh_sites_free(&view.mapped);
	free(view.imports.items);
	if (view.device.name)
		torsh_peak_device_close(&view.device);
}

int torsh_command_peak(int argc, char **argv)
{
	struct read_options options = {0};
	struct reading reading;
	struct peak_options own = {.moments.window.steps.last = UINT64_MAX};
	bool is_of_heap;

	torsh_options_parse(argc, argv, doc, own_options, parse_peak, &own, &options);
	is_of_heap = torsh_moments_are_requested(&own.moments) && !own.device;
	if (!is_of_heap)
		options.without = RECORDING_MOMENTS | RECORDING_VERDICTS;
	torsh_reading_open(&reading, &options);
	if (is_of_heap)
		torsh_peak_moments(&options, &reading, &own.moments);
	else
		show_peak(&options, &reading, &own);
	torsh_reading_close(&reading, &options);
	return TORSH_EXIT_DONE;
}
