/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh leaks: blocks that were not freed when their process ended. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tools/base/die.h"
#include "tools/command/arguments.h"
#include "tools/command/command.h"
#include "tools/command/leaks/leaks_view.h"
#include "tools/command/reading.h"
#include "tools/report/device_report.h"
#include "tools/memory/leaks/rules/growth_rules.h"
#include "tools/memory/growth/growth_window.h"
#include "tools/report/growth_report.h"
#include "tools/frames/blamed_line.h"
#include "tools/frames/folded_stack.h"
#include "tools/live/live.h"

#define TEXT_LIMIT 20

static const char doc[] =
	"Show the blocks that a recorded program had not freed when it ended, by stack.\v"
	"DIR holds recordings (NAME.torsh): its newest session is shown. Sizes are as "
	"requested. Blocks that the C library and the loader keep for themselves are left "
	"out and counted apart, and so is what was alive when a process became another program "
	"(exec): --at-exec shows that. With --growth: stacks whose live bytes go on rising from step "
	"to step, whether or not the process has ended; where no steps are known, over time. With --device: memory that was got "
	"from CUDA, of a device (cuda:0), managed, pinned, registered or imported; what was not freed "
	"before its context was destroyed is among the leaks.\n\n"
	"With --from, --to, --steps, --region or --since the leaks are the blocks that were allocated in "
	"that window of time and were alive when their process ended. What realloc returned was "
	"allocated then. A region that ran several times is all of its spans. Of several windows what "
	"they have in common counts. A recording has the times of a stack's oldest and youngest live "
	"block, and after the program's first mark, region or step those of the blocks in between: in "
	"at most 512 groups for a stack and 16,384 for a process. Where these don't decide whether "
	"blocks were allocated in the window, they are shown apart, as undecided. With --growth a window "
	"is the steps that it overlaps, and what was allocated in it and alive at the end.";

enum { KEY_AT_EXEC = 1, KEY_GROWTH, KEY_DEVICE, KEY_KEPT, KEY_NOW, KEY_WHY };

struct own_choice {
	bool is_at_exec, is_growth, shows_kept;
	const char *device;
	uint32_t now_pid; /* 0: read a recording */
	uint64_t why; /* number of a leak; 0: none */
	const char **path; /* of the recording */
};

static const struct argp_option own_options[] = {
	{"at-exec", KEY_AT_EXEC, NULL, 0,
	 "show in place of leaks what was alive when a process became another program", 0},
	{"kept", KEY_KEPT, NULL, 0,
	 "list what imports, interpreters and libraries keep, and what rules suppressed", 0},
	{"why", KEY_WHY, "N", 0, "show who keeps the blocks of leak number N of the table", 0},
	{"now", KEY_NOW, "PID", 0,
	 "of a running process, which is stopped for a moment to find out what is lost", 0},
	{"growth", KEY_GROWTH, NULL, 0, "show what grows from step to step, in bytes a step", 0},
	{"device", KEY_DEVICE, "NAME", 0,
	 "memory of this device: cuda:0, managed, pinned, registered, imported", 0},
	{0},
};

static error_t parse_own(int key, char *argument, struct argp_state *state)
{
	struct own_choice *choice = state->input;

	switch (key) {
	case KEY_DEVICE:
		choice->device = argument;
		return 0;
	case KEY_WHY:
		choice->why = torsh_argument_number(state, "why", argument);
		return 0;
	case KEY_NOW:
		choice->now_pid = torsh_live_pid(argument);
		*choice->path = argument; /* no recording is looked for */
		return 0;
	case KEY_AT_EXEC:
		choice->is_at_exec = true;
		return 0;
	case KEY_KEPT:
		choice->shows_kept = true;
		return 0;
	case KEY_GROWTH:
		choice->is_growth = true;
		return 0;
	case ARGP_KEY_END:
		if (choice->device && choice->is_growth)
			argp_error(state,
				   "--growth is about the heap: --device can't be used with it");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* What growth is looked for in, where that isn't the whole run by the writer's steps. */
struct growth_reading {
	struct prepass prepass;
	struct windows windows;
	bool has_prepass, has_windows;
};

/* To the steps that the window overlaps and that have ended. */
static void restrict_growth(struct growth_reading *of, const struct read_options *options,
			    const struct reading *reading)
{
	of->has_windows = true;
	torsh_windows_make(&of->windows, &options->window, reading->recording, reading->processes,
			   reading->n_processes);
	for (size_t i = 0; i < of->prepass.n; i++) {
		struct recorded_process *process = reading->processes[i];
		struct steps *steps = &of->prepass.items[i].steps;

		if (process->live.n && !process->has_exact_times)
			torsh_die(
				"%s was made by an older version of torsh: it doesn't have the times of "
				"blocks that --growth takes in a window",
				reading->recording->path);
		steps->n -= steps->n != 0;
		torsh_growth_restrict(process, steps, &of->windows.items[i]);
	}
}

static bool has_steps(const struct reading *reading)
{
	for (size_t i = 0; i < reading->n_processes; i++) {
		if (reading->processes[i]->steps.n_steps)
			return true;
	}
	return false;
}

static void open_growth(struct growth_reading *of, struct growth *growth,
			const struct read_options *options, const struct reading *reading)
{
	if (has_steps(reading) && !options->window.is_some)
		return;
	of->has_prepass = true;
	torsh_prepass_make(&of->prepass, reading->recording, reading->processes,
			   reading->n_processes);
	for (size_t i = 0; i < of->prepass.n; i++)
		torsh_growth_take_steps(reading->processes[i], &of->prepass.items[i].steps);
	growth->prepass = &of->prepass;
	if (!options->window.is_some)
		return;
	restrict_growth(of, options, reading);
	growth->windows = &of->windows;
}

static void close_growth(struct growth_reading *of)
{
	if (of->has_windows)
		torsh_windows_free(&of->windows);
	if (of->has_prepass)
		torsh_prepass_free(&of->prepass);
}

static void show_growth(const struct read_options *options, const struct reading *reading,
			size_t why)
{
	struct growth_reading of = {0};
	struct growth growth = {.takes_time = true,
				.found.depth = options->depth,
				.found.view = options->view,
				.found.is_unmerged = options->has_depth};
	struct growth_view view = {
		.recording = reading->recording,
		.processes = reading->processes,
		.n_processes = reading->n_processes,
		.growth = &growth,
		.max_rows = options->has_depth ? 0 : FOLDED_ROWS,
		.holders = {.symbols = reading->symbols, .stacks = options->view},
	};

	open_growth(&of, &growth, options, reading);
	torsh_growth_find(&growth, reading->processes, reading->n_processes);
	torsh_growth_suppress(&growth, &options->suppress, reading->symbols);
	torsh_sites_merge_stacks(&growth.found, reading->symbols);
	torsh_sites_merge_alike(&growth.found, reading->symbols);
	torsh_growth_fold(&growth);
	view.n_shown = torsh_options_choose(options, &growth.found, reading->symbols, TEXT_LIMIT);
	if (why > view.n_shown)
		torsh_die("there is no number %zu: %zu are shown", why, view.n_shown);
	if (why)
		torsh_leaks_why_of(options, reading, &growth.found.items[why - 1]);
	else if (options->is_json)
		torsh_growth_json(&view);
	else
		torsh_growth_text(&view);
	torsh_growth_free(&growth);
	close_growth(&of);
}

static void open_devices(struct device_reading *devices, const struct reading *reading,
			 const char *name)
{
	torsh_device_reading_open(devices, reading);
	for (size_t i = 0; i < devices->memory.n; i++) {
		if (torsh_device_place(&devices->memory.items[i], name) != DEVICE_NO_PLACE)
			return;
	}
	torsh_device_refuse(&devices->memory, name);
}

/* Why the process was not judged. */
static const char *reason_of(const struct recorded_process *process)
{
	char end[32];

	if (process->verdicts.reason)
		return process->verdicts.reason;
	if (process->heap.sampled_every)
		return "blocks are sampled";
	torsh_recording_end_name(process, end, sizeof(end));
	return strncmp(end, "exit", 4)
		       ? "it did not end by an exit, at which its memory is read"
		       : "TORSH_PROFILER_REACHABILITY was 0, or its writer was not ready";
}

char *torsh_leaks_why_unjudged(const struct leaks_view *view)
{
	const struct reading *reading = view->reading;

	if (view->leaks.device)
		return torsh_need_text("memory of devices is not judged");
	if (view->leaks.at_exec)
		return torsh_need_text("memory is read at exits only");
	for (size_t i = 0; i < reading->n_processes; i++) {
		const struct recorded_process *process = reading->processes[i];
		const struct recorded_verdicts *verdicts = &process->verdicts;

		if (verdicts->is_judged || !view->leaks.processes[i].blocks)
			continue;
		return torsh_need_text("process %" PRIu32 ": %s", process->pid, reason_of(process));
	}
	return NULL;
}

/* Returns how many of the held sites are shown: large ones. */
static size_t choose_held(struct read_options *options, const struct reading *reading,
			  struct allocation_sites *held)
{
	uint64_t given = options->min_bytes,
		 least = torsh_leaks_held_min(reading->processes, reading->n_processes);
	size_t n;

	options->min_bytes = given > least ? given : least;
	n = torsh_options_choose(options, held, reading->symbols, TEXT_LIMIT);
	options->min_bytes = given;
	return n;
}

static bool has_lost(const struct class_sums *classes)
{
	return classes->blocks[BLOCKS_LOST] || classes->blocks[BLOCKS_INDIRECT] ||
	       classes->blocks[BLOCKS_UNKNOWN];
}

/* Put what lines of the program hold before the rest of the n sites; keeps the order otherwise. */
static void put_own_first(struct allocation_sites *sites, size_t n)
{
	struct allocation_site *others = torsh_need_items(NULL, 0, n, sizeof(*others));
	size_t n_own = 0, n_others = 0;

	for (size_t i = 0; i < n; i++) {
		struct blamed_line blamed =
			torsh_blamed_line(sites->items[i].frames, sites->items[i].n_frames,
					  torsh_working_directory());

		if (blamed.is_own)
			sites->items[n_own++] = sites->items[i];
		else
			others[n_others++] = sites->items[i];
	}
	for (size_t i = 0; i < n_others; i++)
		sites->items[n_own + i] = others[i];
	free(others);
}

static void show_leaks(struct read_options *options, const struct reading *reading,
		       const struct own_choice *choice)
{
	struct windows windows = {0};
	struct leaks_view view = {
		.options = options,
		.reading = reading,
		.shows_kept = choice->shows_kept || options->is_verbose,
		.leaks = {.at_exec = choice->is_at_exec,
			  .device = choice->device,
			  .without_imports = options->without_defaults,
			  .with_helpers = options->is_verbose},
	};
	struct device_reading devices;

	if (!options->is_json && !options->has_order && !choice->device)
		options->order = ORDER_LOST;
	if (choice->device) {
		open_devices(&devices, reading, choice->device);
		view.leaks.devices = &devices.memory;
	}
	if (options->window.is_some) {
		torsh_windows_make(&windows, &options->window, reading->recording,
				   reading->processes, reading->n_processes);
		view.leaks.windows = &windows;
	}
	view.leaks.found.depth = options->depth;
	view.leaks.found.view = options->view;
	view.leaks.found.is_unmerged = options->has_depth;
	torsh_leaks_find(&view.leaks, reading->processes, reading->n_processes, reading->symbols,
			 &options->suppress);
	view.n_shown =
		torsh_options_choose(options, &view.leaks.found, reading->symbols, TEXT_LIMIT);
	if (options->order == ORDER_LOST && !has_lost(&view.leaks.classes))
		put_own_first(&view.leaks.found, view.n_shown);
	view.n_undecided_shown =
		torsh_options_choose(options, &view.leaks.undecided, reading->symbols, TEXT_LIMIT);
	view.n_held_shown = choose_held(options, reading, &view.leaks.held);
	if (choice->why)
		torsh_leaks_why(&view, choice->why);
	else if (options->is_json)
		torsh_leaks_json(&view);
	else
		torsh_leaks_text(&view);
	if (choice->device)
		torsh_device_reading_close(&devices);
	torsh_windows_free(&windows);
	torsh_leaks_free(&view.leaks);
}

/* Take a snapshot of the running process, and choose it for reading. */
static void take_now(struct read_options *options, uint32_t pid)
{
	static char path[32];
	const struct live_session *session;
	struct live_sessions sessions;
	struct live_answer answer;
	int fd = memfd_create("torsh-now", MFD_CLOEXEC), result;

	torsh_live_sessions_look(&sessions, 0);
	session = torsh_live_sessions_need(&sessions, pid);
	result = torsh_live_query_process(session->socket_path, REQUEST_JUDGED_SNAPSHOT, pid,
					  &answer);
	if (result)
		torsh_die("the writer of process %" PRIu32 " gave no snapshot: %s", pid,
			  torsh_live_reason(result));
	result = fd < 0 ? -errno
			: torsh_live_write_snapshot(&answer, session->recording->start_realtime_ns,
						    NULL, fd);
	if (result)
		torsh_die("the snapshot can't be written: %s", strerror(-result));
	torsh_live_close(&answer);
	torsh_live_sessions_free(&sessions);
	/* It stays open: this is its only name. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	options->path = path;
	options->has_pid = true;
	options->pid = pid;
}

int torsh_command_leaks(int argc, char **argv)
{
	struct read_options options = {0};
	struct reading reading;
	struct own_choice choice = {.path = &options.path};

	torsh_options_parse_window(argc, argv, doc, own_options, parse_own, &choice, &options);
	if (choice.now_pid)
		take_now(&options, choice.now_pid);
	options.without = choice.is_growth ? 0 : RECORDING_MOMENTS;
	torsh_reading_open(&reading, &options);
	if (choice.is_growth)
		show_growth(&options, &reading, choice.why);
	else
		show_leaks(&options, &reading, &choice);
	torsh_reading_close(&reading, &options);
	return TORSH_EXIT_DONE;
}
