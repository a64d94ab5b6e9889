/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * torsh peak: who held memory at the moment when the heap was largest, of a process or of all
 * together.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/command/arguments.h"
#include "tools/command/command.h"
#include "tools/command/options.h"
#include "tools/command/peak/peak_moments.h"
#include "tools/memory/peak.h"
#include "tools/report/device_refusals_report.h"
#include "tools/report/device_report.h"
#include "tools/report/device_shared_report.h"
#include "tools/frames/folded_stack.h"
#include "tools/report/parts.h"
#include "tools/report/sites/site_rows.h"
#include "tools/report/text.h"

#define TEXT_LIMIT 20
#define TEXT_LIMIT_MAPPED 5
#define PROCESSES_SHOWN 12

static const char doc[] =
	"Show which stacks held memory at the moment when the heap was largest.\v"
	"The moment is exact: the requested sizes, summed over all live blocks of all "
	"processes, were never higher. With --pid it is the highest moment of that process alone; of the processes of one "
	"--rank the one with the highest peak is shown. With --device: the holders of CUDA memory when it was "
	"largest, of a device (cuda:0), managed, pinned, registered or imported, the driver's figure at that moment, and the "
	"allocations that it refused; all: when the heap and all devices together were largest. Of several processes the one with the highest peak is shown, "
	"and when all that used the same device had most of it together.\n\n"
	"With --at, --step or --mark: what was live at another moment. Besides the start, the peak and the end these are "
	"up to 64 regular times, 64 ends of steps and 64 marks; the nearest one is shown, with its distance. With --from or "
	"--to: the highest of the moments between, which is exact if the peak is among them. With --since: what grew from one "
	"moment to another one, and what was given back.";

enum {
	KEY_DEVICE = 0x2000,
	KEY_AT,
	KEY_STEP,
	KEY_MARK,
	KEY_SINCE,
	KEY_FROM,
	KEY_TO,
	KEY_STEPS,
	KEY_REGION
};

static const struct argp_option own_options[] = {
	{"device", KEY_DEVICE, "NAME", 0,
	 "memory of this device: cuda:0, managed, pinned, registered, imported, or all", 0},
	{"at", KEY_AT, "MOMENT", 0,
	 "what was live at a time (1.5s, 200ms since the recording began), at start, peak or end, or at a mark of that name",
	 0},
	{"step", KEY_STEP, "N", 0, "what was live at the end of this step", 0},
	{"mark", KEY_MARK, "NAME", 0, "what was live at the first mark of that name", 0},
	{"since", KEY_SINCE, "MOMENT", 0, "what changed since then, up to --to or the end", 0},
	{"from", KEY_FROM, "MOMENT", 0, "the highest moment from here on", 0},
	{"to", KEY_TO, "MOMENT", 0, "up to here", 0},
	{"steps", KEY_STEPS, "A[-B]", 0, "the highest moment in these steps", 0},
	{"region", KEY_REGION, "NAME", 0, "the highest moment in the ranges of that name", 0},
	{0},
};

struct peak_options {
	const char *device;
	struct moments_request moments;
};

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
	case ARGP_KEY_END:
		if (own->device && torsh_moments_are_requested(moments))
			argp_error(state, "--device shows the peak only");
		if (moments->at.kind && (moments->since.kind || moments->to.kind))
			argp_error(state, "--at, --step and --mark stand alone");
		if ((moments->since.kind || moments->at.kind) &&
		    (moments->from.kind || moments->window.is_some))
			argp_error(
				state,
				"--from, --steps and --region choose the highest moment: no other can be chosen");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* The selection by --device. */
struct device_view {
	const char *name; /* NULL: the heap */
	bool is_all;
	struct device_reading reading;
	const struct device_process *process; /* the process with the shown peak */
	size_t place; /* of it; DEVICE_NO_PLACE with is_all */
	struct shared_devices shared;
};

struct view {
	const struct reading *reading;
	struct device_view device;
	struct peak peak;
	/* The process of the shown address space: that of the peak, else who mapped most. */
	const struct recorded_process *mapper;
	struct allocation_sites heap, mapped;
	size_t n_heap, n_mapped; /* that are printed */
	uint64_t arena_bytes; /* CPython's, of all that was mapped */
	bool is_verbose;
	size_t max_rows; /* of frames per site; 0: all */
};

static const struct recorded_process *choose_mapper(const struct reading *reading)
{
	const struct recorded_process *most = reading->processes[0];

	for (size_t i = 1; i < reading->n_processes; i++) {
		if (reading->processes[i]->vm.peak_bytes > most->vm.peak_bytes)
			most = reading->processes[i];
	}
	return most;
}

static void emit_mappings(struct json_writer *json, const struct view *view)
{
	const struct recorded_vm *vm = &view->mapper->vm;

	torsh_json_begin_object(json, "mappings");
	torsh_json_put_u64(json, "pid", view->mapper->pid);
	torsh_json_put_known(json, "peak_bytes", vm->is_there, vm->peak_bytes);
	torsh_json_put_known(json, "at_ns", vm->is_there, vm->peak_ns);
	torsh_json_put_known(json, "current_bytes", vm->is_there, vm->current_bytes);
	torsh_json_put_known(json, "advised_bytes", vm->is_there, vm->advised_bytes);
	torsh_json_put_known(json, "arena_bytes", vm->is_there, view->arena_bytes);
	torsh_json_begin_array(json, "holders");
	for (size_t i = 0; i < view->n_mapped; i++) {
		const struct allocation_site *site = &view->mapped.items[i];

		torsh_json_begin_object(json, NULL);
		torsh_json_put_u64(json, "bytes", site->bytes);
		torsh_parts_emit_scope(json, site);
		torsh_parts_emit_stack(json, site->frames, site->n_frames);
		torsh_json_put_u64(json, "pieces", site->blocks);
		torsh_json_put_text(json, "what", site->is_arena ? "CPython arena" : NULL);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
	torsh_parts_emit_omitted(json, &view->mapped, view->n_mapped);
	torsh_json_end_object(json);
}

/* The peak of a process in a place, or in all. */
static struct peak device_peak(const struct device_process *process, size_t place)
{
	const struct device_location *seen;

	if (place == DEVICE_NO_PLACE)
		return (struct peak){
			.process = process->process,
			.is_known = process->joint.is_known,
			.bytes = process->joint.bytes,
			.at_ns = process->joint.at.at_ns,
		};
	seen = &process->places[place];
	return (struct peak){
		.process = process->process,
		.is_known = true,
		.bytes = seen->peak_bytes,
		.blocks = seen->peak_n,
		.at_ns = seen->peak.at_ns,
	};
}

static struct peak peak_of(const struct view *view, size_t i)
{
	const struct recorded_process *process = view->reading->processes[i];
	const struct device_process *of;
	size_t place;

	if (!view->device.name)
		return (struct peak){
			.is_known = torsh_recording_has_heap(process),
			.bytes = process->heap.peak_bytes,
			.blocks = process->heap.peak_blocks,
			.at_ns = process->heap.peak_ns,
		};
	of = &view->device.reading.memory.items[i];
	place = view->device.is_all ? DEVICE_NO_PLACE : torsh_device_place(of, view->device.name);
	if (!view->device.is_all && place == DEVICE_NO_PLACE)
		return (struct peak){.is_known = false};
	return device_peak(of, place);
}

static void emit_processes(struct json_writer *json, const struct view *view)
{
	static const char *const measured[] = {"peak_bytes", "peak_blocks", "at_ns",
					       "rss_peak_bytes", NULL};

	torsh_json_begin_array(json, "processes");
	for (size_t i = 0; i < view->reading->n_processes; i++) {
		const struct recorded_process *process = view->reading->processes[i];
		struct peak peak = peak_of(view, i);

		torsh_parts_begin_process(json, process);
		torsh_json_put_known(json, "peak_bytes", peak.is_known, peak.bytes);
		torsh_json_put_known(json, "peak_blocks", peak.is_known && !view->device.is_all,
				     peak.blocks);
		torsh_json_put_known(json, "at_ns", peak.is_known, peak.at_ns);
		torsh_json_put_known(json, "rss_peak_bytes", process->has_rss_peak,
				     process->rss_peak_bytes);
		torsh_json_end_object(json);
	}
	torsh_parts_emit_unfollowed(json, view->reading->unfollowed, view->reading->n_unfollowed,
				    measured);
	torsh_json_end_array(json);
}

/* The one process that the report is about, or all of them. */
static size_t shown_processes(const struct view *view, struct recorded_process *one[1],
			      struct recorded_process *const **shown)
{
	*shown = view->peak.process ? one : view->reading->processes;
	one[0] = (struct recorded_process *)view->peak.process;
	return view->peak.process ? 1 : view->reading->n_processes;
}

static void emit_rss(struct json_writer *json, const struct recorded_process *process)
{
	bool is_known = process && process->has_rss_peak;

	torsh_json_put_known(json, "rss_peak_bytes", is_known,
			     is_known ? process->rss_peak_bytes : 0);
	torsh_json_put_text(json, "rss_peak_source", process ? process->rss_peak_source : NULL);
}

/* Prints the shared device with this name; NULL: all of them. */
static const char *shared_name(const struct device_view *device)
{
	return device->is_all ? NULL : device->name;
}

/* Beside what the heap's report has. */
static void emit_device(struct json_writer *json, const struct view *view)
{
	const struct device_view *device = &view->device;
	const struct device_process *process = device->process;

	if (!device->name)
		return;
	torsh_json_put_text(json, "device", device->name);
	torsh_device_joint_json(json, process);
	torsh_shared_devices_json(json, &device->shared, shared_name(device));
	if (device->is_all)
		return;
	torsh_device_seen_json(json, process);
	torsh_device_framework_json(json, process, device->place, DEVICE_AT_PEAK);
	torsh_device_room_json(json, process, device->place, DEVICE_AT_PEAK);
	torsh_device_refusals_json(json, process, device->place, view->reading->symbols,
				   view->heap.view);
}

static void print_json(const struct view *view)
{
	const struct recorded_process *process = view->peak.process;
	const struct peak *peak = &view->peak;
	struct recorded_process *one[1], *const *shown;
	size_t n_shown = shown_processes(view, one, &shown);
	uint64_t blocks, bytes;
	struct json_writer json;

	torsh_sites_sum(&view->heap, &blocks, &bytes);
	torsh_json_open(&json, stdout);
	torsh_json_begin_report(&json);
	torsh_json_put_u64(&json, "version", 1);
	torsh_json_put_text(&json, "of", process ? "process" : "session");
	torsh_json_put_known(&json, "pid", process, process ? process->pid : 0);
	torsh_json_put_text(&json, "program", process ? process->program : NULL);
	torsh_json_put_known(&json, "peak_bytes", peak->is_known, peak->bytes);
	torsh_json_put_known(&json, "peak_blocks", peak->is_known && !view->device.is_all,
			     peak->blocks);
	torsh_json_put_known(&json, "at_ns", peak->is_known, peak->at_ns);
	if (peak->late_changes)
		torsh_json_put_u64(&json, "late_changes", peak->late_changes);
	emit_device(&json, view);
	emit_rss(&json, process);
	torsh_json_put_u64(&json, "attributed_bytes", bytes);
	torsh_json_begin_lines(&json, "holders");
	for (size_t i = 0; i < view->n_heap; i++)
		torsh_parts_emit_site(&json, &view->heap.items[i]);
	torsh_json_end_array(&json);
	torsh_parts_emit_omitted(&json, &view->heap, view->n_heap);
	emit_mappings(&json, view);
	torsh_parts_emit_events(&json, shown, n_shown);
	emit_processes(&json, view);
	torsh_parts_emit_recording(&json, view->reading->recording);
	torsh_parts_emit_notes(&json, shown, n_shown);
	torsh_parts_emit_counters(&json, shown, n_shown);
	torsh_json_end_object(&json);
	torsh_json_close(&json);
}

static void print_device_heading(const struct view *view)
{
	const struct device_view *device = &view->device;
	uint64_t start_ns = view->peak.process->start_ns;
	char bytes[SIZE_TEXT_BYTES], blocks[64], at[SIZE_TEXT_BYTES];

	if (device->is_all) {
		torsh_text_heading(stdout, "peak of the heap and all devices: %s",
				   torsh_size_exact(view->peak.bytes, bytes));
		torsh_device_text(stdout, device->process, DEVICE_NO_PLACE, DEVICE_AT_PEAK);
		torsh_shared_devices_text(stdout, &device->shared, shared_name(device));
		puts("what follows held memory of devices at that moment; who held the heap when it was largest: without --device");
		return;
	}
	torsh_text_heading(
		stdout, "peak of %s: %s in %s, %s after the start", device->name,
		torsh_size_exact(view->peak.bytes, bytes),
		torsh_text_blocks(view->peak.blocks, blocks),
		torsh_size_duration(view->peak.at_ns > start_ns ? view->peak.at_ns - start_ns : 0,
				    at));
	torsh_device_text(stdout, device->process, device->place, DEVICE_AT_PEAK);
	torsh_shared_devices_text(stdout, &device->shared, shared_name(device));
	torsh_device_refusals_text(stdout, device->process, device->place, view->reading->symbols);
}

static void print_heading(const struct view *view)
{
	const struct recorded_process *process = view->peak.process;
	uint64_t start_ns = process ? process->start_ns : 0;
	char bytes[SIZE_TEXT_BYTES], blocks[64], at[SIZE_TEXT_BYTES];

	if (!view->peak.is_known) {
		torsh_text_heading(stdout, "Nothing is known about the heap of this process.");
		return;
	}
	torsh_text_heading(
		stdout, "peak of %s: %s in %s, %s after the start",
		process ? "the heap" : "all heaps together",
		torsh_size_exact(view->peak.bytes, bytes),
		torsh_text_blocks(view->peak.blocks, blocks),
		torsh_size_duration(view->peak.at_ns > start_ns ? view->peak.at_ns - start_ns : 0,
				    at));
	if (view->peak.late_changes)
		printf("%" PRIu64
		       " changes reached the writer after younger ones of other processes: the peak of all together may "
		       "have been higher\n",
		       view->peak.late_changes);
	if (process && process->has_rss_peak)
		printf("highest resident set: %s%s%s%s\n",
		       torsh_size_exact(process->rss_peak_bytes, bytes),
		       process->rss_peak_source ? " (" : "",
		       process->rss_peak_source ? process->rss_peak_source : "",
		       process->rss_peak_source ? ")" : "");
	else if (process && process->rss_peak_source)
		printf("highest resident set: %s\n", process->rss_peak_source);
	if (process && process->vm.is_there)
		printf("most mapped: %s\n", torsh_size_exact(process->vm.peak_bytes, bytes));
}

/* What each process had of the sum. */
static void print_parts(const struct view *view)
{
	for (size_t i = 0; i < view->reading->n_processes; i++) {
		const struct recorded_process *process = view->reading->processes[i];
		struct allocation_sites sites = {0};
		uint64_t blocks, bytes;
		char text[SIZE_TEXT_BYTES], own[SIZE_TEXT_BYTES];

		torsh_sites_collect(&sites, process, SITES_SESSION_PEAK);
		torsh_sites_sum(&sites, &blocks, &bytes);
		torsh_sites_free(&sites);
		if (bytes)
			printf("  %10s  %s (pid %" PRIu32 "), with an own peak of %s\n",
			       torsh_size_human(bytes, text), torsh_recording_program_name(process),
			       process->pid, torsh_size_human(process->heap.peak_bytes, own));
	}
}

static void print_sites(const struct view *view, const struct allocation_site *items, size_t n,
			uint64_t whole_bytes, const char *heading)
{
	torsh_site_rows_print(stdout, &(struct site_rows){
					      .heading = heading,
					      .items = items,
					      .n = n,
					      .whole_bytes = whole_bytes,
					      .with_pid = !view->peak.process,
					      .max_rows = view->max_rows,
				      });
}

static void print_mapped(const struct view *view)
{
	char bytes[SIZE_TEXT_BYTES];

	if (!view->n_mapped || view->device.name)
		return;
	if (view->arena_bytes)
		torsh_text_heading(
			stdout,
			"Python's objects: %s of CPython's arenas when most was mapped, by the lines that made them grow",
			torsh_size_human(view->arena_bytes, bytes));
	else
		torsh_text_heading(stdout, "Address space of pid %" PRIu32 " when most was mapped",
				   view->mapper->pid);
	print_sites(view, view->mapped.items, view->n_mapped, view->mapper->vm.peak_bytes,
		    "MAPPED");
}

static void print_held(const struct view *view)
{
	size_t n_left = view->heap.n - view->n_heap;

	print_sites(view, view->heap.items, view->n_heap, view->peak.bytes, "HELD");
	if (n_left)
		printf("... and %zu smaller ones; --limit 0 shows all\n", n_left);
}

/* What held most is first. */
static void print_text(const struct view *view)
{
	struct recorded_process *one[1], *const *shown;
	size_t n_shown = shown_processes(view, one, &shown);
	bool arenas_lead =
		!view->device.name && view->n_heap && view->arena_bytes > view->heap.items[0].bytes;

	torsh_text_missing(stdout, view->reading->recording, shown, n_shown);
	if (view->is_verbose)
		torsh_text_processes(stdout, shown, n_shown, PROCESSES_SHOWN);
	if (view->peak.process && view->reading->n_processes > 1)
		printf("%s (pid %" PRIu32
		       "): of %zu processes this has the highest peak; --pid shows another\n",
		       torsh_recording_program_name(view->peak.process), view->peak.process->pid,
		       view->reading->n_processes);
	if (view->device.name)
		print_device_heading(view);
	else
		print_heading(view);
	if (!view->peak.process)
		print_parts(view);
	torsh_text_losses(stdout, shown, n_shown, view->is_verbose);
	torsh_text_notes(stdout, view->reading->recording, shown, n_shown);
	if (arenas_lead)
		print_mapped(view);
	print_held(view);
	if (!arenas_lead)
		print_mapped(view);
}

/* CPython's arenas first, which hold most objects of Python; the order is kept otherwise. */
static void put_arenas_first(struct view *view)
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

/* Returns the process with the highest peak of the selected device. */
static void choose_device(struct view *view)
{
	struct device_view *device = &view->device;
	const struct memory_of_devices *memory = &device->reading.memory;
	struct peak highest = {0};

	device->is_all = strcmp(device->name, "all") == 0;
	torsh_device_reading_open(&device->reading, view->reading);
	torsh_shared_devices_find(&device->shared, memory);
	for (size_t i = 0; i < memory->n; i++) {
		struct peak peak = peak_of(view, i);

		if (!peak.is_known || (highest.is_known && peak.bytes <= highest.bytes))
			continue;
		highest = peak;
		device->process = &memory->items[i];
	}
	if (!device->process)
		torsh_device_refuse(memory, device->name);
	device->place = device->is_all ? DEVICE_NO_PLACE
				       : torsh_device_place(device->process, device->name);
	view->peak = highest;
}

static void close_device(struct device_view *device)
{
	torsh_shared_devices_free(&device->shared);
	torsh_device_reading_close(&device->reading);
}

static void collect_device(struct view *view)
{
	const struct device_view *device = &view->device;
	const struct device_moment *moment = device->is_all
						     ? &device->process->joint.at
						     : &device->process->places[device->place].peak;

	torsh_device_memory_at(&view->heap, &device->reading.memory, device->process, device->place,
			       moment);
}

static void show_peak(struct read_options *options, struct reading *reading, const char *device)
{
	struct view view = {.reading = reading, .device.name = device};

	if (view.device.name)
		choose_device(&view);
	else
		view.peak = torsh_peak_choose(reading->recording, reading->processes,
					      reading->n_processes);
	view.mapper = view.peak.process ? view.peak.process : choose_mapper(reading);
	view.heap.depth = view.mapped.depth = options->depth;
	view.heap.view = view.mapped.view = options->view;
	view.heap.is_unmerged = view.mapped.is_unmerged = options->has_depth;
	if (view.device.name)
		collect_device(&view);
	else
		torsh_peak_collect(&view.heap, &view.peak, reading->recording);
	torsh_sites_collect(&view.mapped, view.mapper, SITES_MAPPED);
	torsh_sites_mark_arenas(&view.mapped, reading->symbols);
	torsh_sites_merge_stacks(&view.heap, reading->symbols);
	torsh_sites_merge_stacks(&view.mapped, reading->symbols);
	torsh_sites_merge_alike(&view.heap, reading->symbols);
	torsh_sites_merge_alike(&view.mapped, reading->symbols);
	view.is_verbose = options->is_verbose;
	view.max_rows = options->has_depth ? 0 : FOLDED_ROWS;
	for (size_t i = 0; i < view.mapped.n; i++)
		view.arena_bytes += view.mapped.items[i].is_arena ? view.mapped.items[i].bytes : 0;
	view.n_heap = torsh_options_choose(options, &view.heap, reading->symbols, TEXT_LIMIT);
	view.n_mapped =
		torsh_options_choose(options, &view.mapped, reading->symbols, TEXT_LIMIT_MAPPED);
	if (options->is_json) {
		print_json(&view);
	} else {
		put_arenas_first(&view);
		print_text(&view);
	}
	torsh_sites_free(&view.heap);
	torsh_sites_free(&view.mapped);
	if (view.device.name)
		close_device(&view.device);
}

int torsh_command_peak(int argc, char **argv)
{
	struct read_options options = {0};
	struct reading reading;
	struct peak_options own = {.moments.window.steps.last = UINT64_MAX};

	torsh_options_parse(argc, argv, doc, own_options, parse_peak, &own, &options);
	torsh_reading_open(&reading, &options);
	if (torsh_moments_are_requested(&own.moments))
		torsh_peak_moments(&options, &reading, &own.moments);
	else
		show_peak(&options, &reading, own.device);
	torsh_reading_close(&reading, &options);
	return TORSH_EXIT_DONE;
}
