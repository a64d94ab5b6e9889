/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh leaks: blocks that were not freed when their process ended. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/command/command.h"
#include "tools/command/options.h"
#include "tools/recording/losses.h"
#include "tools/report/device_report.h"
#include "tools/report/growth_report.h"
#include "tools/frames/folded_stack.h"
#include "tools/report/parts.h"
#include "tools/report/sites/site_rows.h"
#include "tools/report/text.h"

#define TEXT_LIMIT 20
#define PROCESSES_SHOWN 10
#define IMPORTS_SHOWN 4

static const char doc[] =
	"Show the blocks that a recorded program had not freed when it ended, by stack.\v"
	"DIR holds recordings (NAME.torsh): its newest session is shown. Sizes are as "
	"requested. Blocks that the C library and the loader keep for themselves are left "
	"out and counted apart, and so is what was alive when a process became another program "
	"(exec): --at-exec shows that. With --growth: stacks that leave blocks behind in step after "
	"step of a training, whether or not the process has ended. With --device: memory that was got "
	"from CUDA, of a device (cuda:0), managed, pinned, registered or imported; what was not freed "
	"before its context was destroyed is among the leaks.";

enum { KEY_AT_EXEC = 1, KEY_GROWTH, KEY_DEVICE, KEY_KEPT };

struct own_choice {
	bool is_at_exec, is_growth, shows_kept;
	const char *device;
};

static const struct argp_option own_options[] = {
	{"at-exec", KEY_AT_EXEC, NULL, 0,
	 "show in place of leaks what was alive when a process became another program", 0},
	{"kept", KEY_KEPT, NULL, 0,
	 "list what imports, interpreters and libraries keep, and what rules suppressed", 0},
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

struct view {
	const struct read_options *options;
	const struct reading *reading;
	struct leaks leaks;
	size_t n_shown; /* allocation sites that are printed */
	bool shows_kept;
};

static void emit_leak(struct json_writer *json, const struct allocation_site *site)
{
	torsh_parts_begin_site(json, site);
	torsh_json_put_known(json, "usable_bytes", site->usable_is_known, site->usable_bytes);
	torsh_json_put_known(json, "first_ns", site->has_times, site->first_ns);
	torsh_json_put_known(json, "last_ns", site->has_times, site->last_ns);
	torsh_parts_emit_stack(json, site->frames, site->n_frames);
	torsh_json_end_object(json);
}

/* {"bytes", "blocks"} */
static void emit_amount(struct json_writer *json, const char *name, bool is_known, uint64_t bytes,
			uint64_t blocks)
{
	torsh_json_begin_object(json, name);
	torsh_json_put_known(json, "bytes", is_known, bytes);
	torsh_json_put_known(json, "blocks", is_known, blocks);
	torsh_json_end_object(json);
}

static void emit_bookkeeping(struct json_writer *json, const struct leaks *leaks)
{
	torsh_json_begin_object(json, "bookkeeping");
	torsh_json_put_u64(json, "bytes", leaks->bookkeeping_bytes);
	torsh_json_put_u64(json, "blocks", leaks->bookkeeping_blocks);
	torsh_json_begin_array(json, "by");
	for (size_t i = 0; i < leaks->n_bookkeeping; i++) {
		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "what", leaks->bookkeeping[i].what);
		torsh_json_put_u64(json, "bytes", leaks->bookkeeping[i].bytes);
		torsh_json_put_u64(json, "blocks", leaks->bookkeeping[i].blocks);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
	torsh_json_end_object(json);
}

static void emit_suppressed(struct json_writer *json, const struct leaks *leaks,
			    const struct suppress *suppress)
{
	torsh_json_begin_object(json, "suppressed");
	torsh_json_put_u64(json, "bytes", leaks->suppressed_bytes);
	torsh_json_put_u64(json, "blocks", leaks->suppressed_blocks);
	torsh_json_begin_array(json, "by");
	for (size_t i = 0; i < suppress->n; i++) {
		if ((suppress->rules[i].is_built_in || suppress->rules[i].process) &&
		    !suppress->rules[i].n_stacks)
			continue;
		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "rule", suppress->rules[i].pattern);
		torsh_json_put_text(json, "kind", torsh_suppress_kind(&suppress->rules[i]));
		torsh_json_put_bool(json, "built_in", suppress->rules[i].is_built_in);
		torsh_json_put_u64(json, "bytes", suppress->rules[i].bytes);
		torsh_json_put_u64(json, "blocks", suppress->rules[i].blocks);
		torsh_json_put_u64(json, "stacks", suppress->rules[i].n_stacks);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
	torsh_json_end_object(json);
}

/* What the imports of packages keep; suppressed_bytes: of that what a rule has taken. */
static void emit_imports(struct json_writer *json, const struct kept_imports *imports)
{
	torsh_json_begin_object(json, "kept_by_imports");
	torsh_json_put_u64(json, "bytes", imports->bytes);
	torsh_json_put_u64(json, "blocks", imports->blocks);
	torsh_json_put_u64(json, "suppressed_bytes", imports->suppressed_bytes);
	torsh_json_begin_array(json, "by");
	for (size_t i = 0; i < imports->n; i++) {
		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "package", imports->items[i].package);
		torsh_json_put_u64(json, "bytes", imports->items[i].bytes);
		torsh_json_put_u64(json, "blocks", imports->items[i].blocks);
		torsh_json_put_u64(json, "suppressed_bytes", imports->items[i].suppressed_bytes);
		torsh_json_put_u64(json, "suppressed_blocks", imports->items[i].suppressed_blocks);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
	torsh_json_end_object(json);
}

static void emit_processes(struct json_writer *json, const struct view *view)
{
	static const char *const measured[] = {"leaked_bytes", "leaked_blocks", "at_exec_bytes",
					       "at_exec_blocks", NULL};

	torsh_json_begin_array(json, "processes");
	for (size_t i = 0; i < view->reading->n_processes; i++) {
		torsh_parts_begin_process(json, view->reading->processes[i]);
		torsh_parts_emit_leaks(json, &view->leaks.processes[i],
				       view->leaks.device || torsh_recording_has_heap(
								     view->reading->processes[i]));
		torsh_json_end_object(json);
	}
	torsh_parts_emit_unfollowed(json, view->reading->unfollowed, view->reading->n_unfollowed,
				    measured);
	torsh_json_end_array(json);
}

/*
 * What the first process was at its end: a wrapper that executed the program is an image before
 * that.
 */
static const struct recorded_process *last_image(const struct reading *reading)
{
	const struct recorded_process *image = reading->processes[0];

	for (size_t i = 1; i < reading->n_processes; i++)
		if (image->end == TORSH__PROCESS__END_KIND__EXECUTED &&
		    reading->processes[i]->pid == image->pid)
			image = reading->processes[i];
	return image;
}

/* Beside what the heap's report has. */
static void emit_device(struct json_writer *json, const struct view *view)
{
	const struct leaks *leaks = &view->leaks;

	if (!leaks->devices)
		return;
	torsh_json_put_text(json, "device", leaks->device);
	emit_amount(json, "with_context", true, leaks->with_context.bytes,
		    leaks->with_context.blocks);
	torsh_json_begin_array(json, "devices");
	for (size_t i = 0; i < leaks->devices->n; i++) {
		const struct device_process *process = &leaks->devices->items[i];
		size_t place = torsh_device_place(process, leaks->device);

		if (place != DEVICE_NO_PLACE)
			torsh_device_end_json(json, process, place);
	}
	torsh_json_end_array(json);
}

static void print_json(const struct view *view)
{
	const struct leaks *leaks = &view->leaks;
	const struct reading *reading = view->reading;
	const struct recorded_process *first = last_image(reading);
	bool is_known = leaks->device ||
			torsh_recording_has_heaps(reading->processes, reading->n_processes);
	struct json_writer json;
	char end[32];

	torsh_recording_end_name(first, end, sizeof(end));
	torsh_json_open(&json, stdout);
	torsh_json_begin_report(&json);
	torsh_json_put_u64(&json, "version", 1);
	torsh_json_put_u64(&json, "pid", first->pid);
	torsh_json_put_text(&json, "program", first->program);
	torsh_json_put_text(&json, "end", end);
	torsh_json_put_text(&json, "alive_at", leaks->at_exec ? "exec" : "end");
	emit_device(&json, view);
	torsh_json_put_known(&json, "leaked_bytes", is_known, leaks->bytes);
	torsh_json_put_known(&json, "leaked_blocks", is_known, leaks->blocks);
	emit_amount(&json, "alive", is_known, leaks->alive_bytes, leaks->alive_blocks);
	torsh_json_put_known(&json, "usable_bytes", leaks->usable_is_known, leaks->usable_bytes);
	if (leaks->usable_is_known)
		torsh_json_put_i64(&json, "overhead_bytes",
				   (int64_t)(leaks->usable_bytes - leaks->bytes));
	else
		torsh_json_put_null(&json, "overhead_bytes");
	torsh_json_begin_lines(&json, "leaks");
	for (size_t i = 0; i < view->n_shown; i++)
		emit_leak(&json, &leaks->found.items[i]);
	torsh_json_end_array(&json);
	torsh_parts_emit_omitted(&json, &leaks->found, view->n_shown);
	emit_bookkeeping(&json, leaks);
	emit_suppressed(&json, leaks, &view->options->suppress);
	emit_imports(&json, &leaks->imports);
	emit_amount(&json, "inherited", true, leaks->inherited_bytes, leaks->inherited_blocks);
	emit_amount(&json, "at_exec", true, leaks->exec_bytes, leaks->exec_blocks);
	torsh_parts_emit_events(&json, reading->processes, reading->n_processes);
	emit_processes(&json, view);
	torsh_parts_emit_recording(&json, reading->recording);
	torsh_parts_emit_notes(&json, reading->processes, reading->n_processes);
	torsh_parts_emit_counters(&json, reading->processes, reading->n_processes);
	torsh_json_end_object(&json);
	torsh_json_close(&json);
}

static void print_imports(const struct kept_imports *imports)
{
	char bytes[SIZE_TEXT_BYTES];

	for (size_t i = 0; i < imports->n; i++)
		printf("kept by the import of %s: %s\n", imports->items[i].package,
		       torsh_size_exact(imports->items[i].bytes +
						imports->items[i].suppressed_bytes,
					bytes));
}

static void print_left_out(const struct view *view)
{
	const struct leaks *leaks = &view->leaks;
	const struct suppress *suppress = &view->options->suppress;
	char bytes[SIZE_TEXT_BYTES], blocks[64];

	if (leaks->bookkeeping_blocks) {
		printf("left out: %s in %s of bookkeeping\n",
		       torsh_size_exact(leaks->bookkeeping_bytes, bytes),
		       torsh_text_blocks(leaks->bookkeeping_blocks, blocks));
		for (size_t i = 0; i < leaks->n_bookkeeping; i++)
			printf("          %s: %s in %s\n", leaks->bookkeeping[i].what,
			       torsh_size_exact(leaks->bookkeeping[i].bytes, bytes),
			       torsh_text_blocks(leaks->bookkeeping[i].blocks, blocks));
	}
	if (leaks->inherited_blocks)
		printf("left out: %s in %s from before a fork\n",
		       torsh_size_exact(leaks->inherited_bytes, bytes),
		       torsh_text_blocks(leaks->inherited_blocks, blocks));
	if (leaks->exec_blocks && !leaks->at_exec)
		printf("no leaks: %s in %s, alive when a process became another program; --at-exec shows them\n",
		       torsh_size_exact(leaks->exec_bytes, bytes),
		       torsh_text_blocks(leaks->exec_blocks, blocks));
	for (size_t i = 0; i < suppress->n; i++) {
		if (suppress->rules[i].n_stacks)
			printf("suppressed: %s in %s by %s:%s%s\n",
			       torsh_size_exact(suppress->rules[i].bytes, bytes),
			       torsh_text_blocks(suppress->rules[i].blocks, blocks),
			       torsh_suppress_kind(&suppress->rules[i]), suppress->rules[i].pattern,
			       suppress->rules[i].is_built_in ? " (built in)"
			       : suppress->rules[i].process   ? " (the program's own)"
							      : "");
	}
}

/* By rules that are built in, less what these took of imports; by others into *own_bytes. */
static uint64_t interpreter_bytes(const struct view *view, uint64_t *own_bytes)
{
	const struct suppress *suppress = &view->options->suppress;
	uint64_t bytes = 0;

	*own_bytes = 0;
	for (size_t i = 0; i < suppress->n; i++)
		*(suppress->rules[i].is_built_in ? &bytes : own_bytes) += suppress->rules[i].bytes;
	return bytes > view->leaks.imports.suppressed_bytes
		       ? bytes - view->leaks.imports.suppressed_bytes
		       : 0;
}

static void print_part(bool *is_first, const char *what, uint64_t bytes)
{
	char text[SIZE_TEXT_BYTES];

	if (!bytes)
		return;
	printf("%s%s %s", *is_first ? "" : ", ", what, torsh_size_human(bytes, text));
	*is_first = false;
}

/* One line: "Kept by imports: torch 15.0 MiB; by the interpreter 640 KiB, ... (--kept)". */
static void print_kept(const struct view *view)
{
	const struct leaks *leaks = &view->leaks;
	const struct kept_imports *imports = &leaks->imports;
	uint64_t own_bytes, rule_bytes = interpreter_bytes(view, &own_bytes), others = 0;
	bool is_first = true;

	if (!leaks->suppressed_blocks && !imports->blocks && !leaks->bookkeeping_blocks &&
	    !leaks->inherited_blocks)
		return;
	fputs(imports->n ? "Kept by imports: " : "Kept: ", stdout);
	for (size_t i = 0; i < imports->n; i++) {
		uint64_t bytes = imports->items[i].bytes + imports->items[i].suppressed_bytes;

		if (i < IMPORTS_SHOWN)
			print_part(&is_first, imports->items[i].package, bytes);
		else
			others += bytes;
	}
	print_part(&is_first, "others", others);
	if (imports->n && !is_first)
		fputs("; kept", stdout);
	is_first = true;
	print_part(&is_first, imports->n ? " by the interpreter" : "by the interpreter",
		   rule_bytes);
	print_part(&is_first, is_first && imports->n ? " by libraries" : "by libraries",
		   leaks->bookkeeping_bytes);
	print_part(&is_first, "from before a fork", leaks->inherited_bytes);
	print_part(&is_first, "suppressed by rules", own_bytes);
	puts("  (--kept)");
}

static void print_device_text(const struct view *view)
{
	const struct leaks *leaks = &view->leaks;
	char bytes[SIZE_TEXT_BYTES], blocks[64];

	if (!leaks->devices)
		return;
	if (leaks->with_context.blocks)
		printf("of that %s in %s ended with the context in which they were allocated\n",
		       torsh_size_exact(leaks->with_context.bytes, bytes),
		       torsh_text_blocks(leaks->with_context.blocks, blocks));
	for (size_t i = 0; i < leaks->devices->n; i++) {
		const struct device_process *process = &leaks->devices->items[i];
		size_t place = torsh_device_place(process, leaks->device);

		if (place == DEVICE_NO_PLACE)
			continue;
		printf("pid %" PRIu32 " held %s of %s at the end\n", process->process->pid,
		       torsh_size_exact(process->blocks.scopes[place].bytes, bytes), leaks->device);
		torsh_device_text(stdout, process, place, DEVICE_AT_END);
	}
}

static void print_heading(const struct view *view)
{
	const struct leaks *leaks = &view->leaks;
	const struct reading *reading = view->reading;
	const char *of = leaks->device ? " of " : "", *device = leaks->device ? leaks->device : "";
	size_t n_lines = torsh_site_rows_lines(leaks->found.items, view->n_shown);
	char bytes[SIZE_TEXT_BYTES], blocks[64], at[64] = "";

	if (n_lines && view->n_shown == leaks->found.n)
		snprintf(at, sizeof(at), ", at %zu line%s of yours", n_lines,
			 n_lines == 1 ? "" : "s");
	if (leaks->at_exec)
		torsh_text_heading(stdout,
				   "%s in %s were alive when a process became another program",
				   torsh_size_human(leaks->bytes, bytes),
				   torsh_text_blocks(leaks->blocks, blocks));
	else if (!leaks->device &&
		 !torsh_recording_has_heaps(reading->processes, reading->n_processes))
		torsh_text_heading(stdout, "Nothing is known about the heap.");
	else if (!leaks->blocks &&
		 !torsh_losses_heap_is_whole(reading->recording, reading->processes,
					     reading->n_processes))
		torsh_text_heading(stdout, "Nothing that leaked is among what was recorded.");
	else if (!leaks->blocks)
		torsh_text_heading(stdout, "No leaks%s%s.", of, device);
	else
		torsh_text_heading(stdout, "%s%s%s leaked in %s%s",
				   torsh_size_human(leaks->bytes, bytes), of, device,
				   torsh_text_blocks(leaks->blocks, blocks), at);
}

/* A line for each process that leaks, where several do. */
static void print_leaking(const struct view *view)
{
	const struct reading *reading = view->reading;
	const struct leaks_process *of = view->leaks.processes;
	size_t n = 0;
	char bytes[SIZE_TEXT_BYTES];

	for (size_t i = 0; i < reading->n_processes; i++)
		n += of[i].blocks != 0;
	for (size_t i = 0, k = 0; n > 1 && i < reading->n_processes && k < PROCESSES_SHOWN; i++) {
		if (!of[i].blocks)
			continue;
		printf("%10s  %s (pid %" PRIu32 ")\n", torsh_size_human(of[i].bytes, bytes),
		       torsh_recording_program_name(reading->processes[i]),
		       reading->processes[i]->pid);
		k++;
	}
	if (n > PROCESSES_SHOWN)
		printf("... and %zu more processes with leaks\n", n - PROCESSES_SHOWN);
}

/* What --verbose shows besides, and losses always. */
static void print_details(const struct view *view)
{
	const struct leaks *leaks = &view->leaks;
	const struct reading *reading = view->reading;
	char usable[SIZE_TEXT_BYTES], bytes[SIZE_TEXT_BYTES], blocks[64];

	if (view->options->is_verbose) {
		torsh_text_processes(stdout, reading->processes, reading->n_processes,
				     PROCESSES_SHOWN);
		torsh_text_unfollowed(stdout, reading->unfollowed, reading->n_unfollowed,
				      PROCESSES_SHOWN);
		if (!leaks->device && !leaks->at_exec && leaks->alive_blocks)
			torsh_text_alive(stdout, leaks);
		if (leaks->blocks && leaks->usable_is_known)
			printf("the allocator took %s for them\n",
			       torsh_size_exact(leaks->usable_bytes, usable));
	}
	if (!view->shows_kept && leaks->exec_blocks && !leaks->at_exec)
		printf("no leaks: %s in %s, alive when a process became another program; --at-exec shows them\n",
		       torsh_size_human(leaks->exec_bytes, bytes),
		       torsh_text_blocks(leaks->exec_blocks, blocks));
	torsh_text_losses(stdout, reading->processes, reading->n_processes,
			  view->options->is_verbose);
	torsh_text_notes(stdout, reading->recording, reading->processes, reading->n_processes);
}

static void print_text(const struct view *view)
{
	const struct leaks *leaks = &view->leaks;
	const struct reading *reading = view->reading;
	size_t n_left = leaks->found.n - view->n_shown;

	torsh_text_missing(stdout, reading->recording, reading->processes, reading->n_processes);
	print_heading(view);
	print_leaking(view);
	if (!leaks->device)
		torsh_text_unknown_heaps(stdout, reading->processes, reading->n_processes,
					 PROCESSES_SHOWN);
	print_device_text(view);
	torsh_site_rows_print(stdout,
			      &(struct site_rows){
				      .heading = leaks->at_exec ? "ALIVE" : "LEAKED",
				      .items = leaks->found.items,
				      .n = view->n_shown,
				      .whole_bytes = leaks->bytes,
				      .with_pid = reading->n_processes > 1,
				      .max_rows = view->options->has_depth ? 0 : FOLDED_ROWS,
			      });
	if (n_left)
		printf("... and %zu smaller ones; --limit 0 shows all\n", n_left);
	if (view->shows_kept) {
		print_imports(&leaks->imports);
		print_left_out(view);
	} else {
		print_kept(view);
	}
	print_details(view);
}

static void show_growth(const struct read_options *options, const struct reading *reading)
{
	struct growth growth = {.found.depth = options->depth,
				.found.view = options->view,
				.found.is_unmerged = options->has_depth};
	struct growth_view view = {
		.recording = reading->recording,
		.processes = reading->processes,
		.n_processes = reading->n_processes,
		.growth = &growth,
		.max_rows = options->has_depth ? 0 : FOLDED_ROWS,
	};

	torsh_growth_find(&growth, reading->processes, reading->n_processes);
	torsh_sites_merge_stacks(&growth.found, reading->symbols);
	torsh_sites_merge_alike(&growth.found, reading->symbols);
	view.n_shown = torsh_options_choose(options, &growth.found, reading->symbols, TEXT_LIMIT);
	if (options->is_json)
		torsh_growth_json(&view);
	else
		torsh_growth_text(&view);
	torsh_growth_free(&growth);
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

static void show_leaks(struct read_options *options, const struct reading *reading,
		       const struct own_choice *choice)
{
	struct view view = {
		.options = options,
		.reading = reading,
		.shows_kept = choice->shows_kept || options->is_verbose,
		.leaks = {.at_exec = choice->is_at_exec,
			  .device = choice->device,
			  .without_imports = options->without_defaults},
	};
	struct device_reading devices;

	if (choice->device) {
		open_devices(&devices, reading, choice->device);
		view.leaks.devices = &devices.memory;
	}
	view.leaks.found.depth = options->depth;
	view.leaks.found.view = options->view;
	view.leaks.found.is_unmerged = options->has_depth;
	torsh_leaks_find(&view.leaks, reading->processes, reading->n_processes, reading->symbols,
			 &options->suppress);
	view.n_shown =
		torsh_options_choose(options, &view.leaks.found, reading->symbols, TEXT_LIMIT);
	if (options->is_json)
		print_json(&view);
	else
		print_text(&view);
	if (choice->device)
		torsh_device_reading_close(&devices);
	torsh_leaks_free(&view.leaks);
}

int torsh_command_leaks(int argc, char **argv)
{
	struct read_options options = {0};
	struct reading reading;
	struct own_choice choice = {0};

	torsh_options_parse(argc, argv, doc, own_options, parse_own, &choice, &options);
	torsh_reading_open(&reading, &options);
	if (choice.is_growth)
		show_growth(&options, &reading);
	else
		show_leaks(&options, &reading, &choice);
	torsh_reading_close(&reading, &options);
	return TORSH_EXIT_DONE;
}
