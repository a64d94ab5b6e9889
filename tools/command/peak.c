/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh peak: who held memory at the moment when the heap of a process was largest. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/command/command.h"
#include "tools/command/options.h"
#include "tools/die.h"
#include "tools/report/parts.h"
#include "tools/report/text.h"
#include "tools/size.h"

#define TEXT_LIMIT 20
#define TEXT_LIMIT_MAPPED 5

static const char doc[] =
	"Show which stacks held memory at the moment when the heap was largest.\v"
	"The moment is exact: the sizes that the program asked for, summed over all live blocks, were "
	"never higher. Of several processes the one with the highest peak is shown; --pid chooses.";

struct view {
	const struct reading *reading;
	const struct profile_process *process;
	struct holders heap, mapped;
	size_t n_heap, n_mapped; /* that are printed */
};

static const struct profile_process *choose_process(const struct reading *reading)
{
	const struct profile_process *highest = reading->processes[0];

	for (size_t i = 1; i < reading->n_processes; i++) {
		if (reading->processes[i]->heap.peak_bytes > highest->heap.peak_bytes)
			highest = reading->processes[i];
	}
	return highest;
}

static cJSON *known_or_null(bool is_known, uint64_t number)
{
	return is_known ? torsh_json_u64(number) : torsh_json_text(NULL);
}

static cJSON *make_mappings(const struct view *view)
{
	const struct profile_vm *vm = &view->process->vm;
	cJSON *object = torsh_json_object(), *list = torsh_json_list();

	torsh_json_set(object, "peak_bytes", known_or_null(vm->is_there, vm->peak_bytes));
	torsh_json_set(object, "at_ns", known_or_null(vm->is_there, vm->peak_ns));
	torsh_json_set(object, "current_bytes", known_or_null(vm->is_there, vm->current_bytes));
	torsh_json_set(object, "advised_bytes", known_or_null(vm->is_there, vm->advised_bytes));
	for (size_t i = 0; i < view->n_mapped; i++) {
		cJSON *holder = torsh_parts_holder(&view->mapped.items[i], false);

		cJSON_DeleteItemFromObjectCaseSensitive(holder, "blocks");
		torsh_json_set(holder, "pieces", torsh_json_u64(view->mapped.items[i].blocks));
		torsh_json_add(list, holder);
	}
	torsh_json_set(object, "holders", list);
	torsh_json_set(object, "omitted", torsh_parts_omitted(&view->mapped, view->n_mapped));
	return object;
}

static cJSON *make_processes(const struct view *view)
{
	cJSON *list = torsh_json_list();

	for (size_t i = 0; i < view->reading->n_processes; i++) {
		const struct profile_process *process = view->reading->processes[i];
		cJSON *object = torsh_parts_process(process);

		torsh_json_set(object, "peak_bytes", known_or_null(process->heap.is_there, process->heap.peak_bytes));
		torsh_json_set(object, "peak_blocks", known_or_null(process->heap.is_there, process->heap.peak_blocks));
		torsh_json_set(object, "at_ns", known_or_null(process->heap.is_there, process->heap.peak_ns));
		torsh_json_set(object, "rss_peak_bytes", known_or_null(process->has_rss_peak, process->rss_peak_bytes));
		torsh_json_add(list, object);
	}
	return list;
}

static void print_json(const struct view *view)
{
	const struct profile_process *process = view->process;
	const struct profile_heap *heap = &process->heap;
	const struct reading *reading = view->reading;
	struct profile_process *const shown[] = {(struct profile_process *)process};
	uint64_t blocks, bytes;
	struct json json;

	torsh_holders_sum(&view->heap, &blocks, &bytes);
	torsh_json_begin(&json, stdout);
	torsh_json_member(&json, "version", torsh_json_u64(1));
	torsh_json_member(&json, "pid", torsh_json_u64(process->pid));
	torsh_json_member(&json, "program", torsh_json_text(process->program));
	torsh_json_member(&json, "of", torsh_json_text("process"));
	torsh_json_member(&json, "peak_bytes", known_or_null(heap->is_there, heap->peak_bytes));
	torsh_json_member(&json, "peak_blocks", known_or_null(heap->is_there, heap->peak_blocks));
	torsh_json_member(&json, "at_ns", known_or_null(heap->is_there, heap->peak_ns));
	torsh_json_member(&json, "rss_peak_bytes", known_or_null(process->has_rss_peak, process->rss_peak_bytes));
	torsh_json_member(&json, "rss_peak_source", torsh_json_text(process->rss_peak_source));
	torsh_json_member(&json, "attributed_bytes", torsh_json_u64(bytes));
	torsh_json_array(&json, "holders");
	for (size_t i = 0; i < view->n_heap; i++)
		torsh_json_item(&json, torsh_parts_holder(&view->heap.items[i], false));
	torsh_json_array_end(&json);
	torsh_json_member(&json, "omitted", torsh_parts_omitted(&view->heap, view->n_heap));
	torsh_json_member(&json, "mappings", make_mappings(view));
	torsh_json_member(&json, "events", torsh_parts_events(shown, 1));
	torsh_json_member(&json, "processes", make_processes(view));
	torsh_json_member(&json, "recording", torsh_parts_recording(reading->profile));
	torsh_json_member(&json, "notes", torsh_parts_notes(shown, 1));
	torsh_json_member(&json, "counters", torsh_parts_counters(shown, 1));
	torsh_json_end(&json);
}

static void print_heading(const struct view *view)
{
	const struct profile_process *process = view->process;
	const struct profile_heap *heap = &process->heap;
	char bytes[SIZE_TEXT_BYTES], blocks[64], at[SIZE_TEXT_BYTES];
	uint64_t at_ns = heap->peak_ns > process->start_ns ? heap->peak_ns - process->start_ns : 0;

	if (!heap->is_there) {
		torsh_text_heading(stdout, "Nothing is known about the heap of this process.");
		return;
	}
	torsh_text_heading(stdout, "peak of the heap: %s in %s, %s after the start",
			   torsh_size_exact(heap->peak_bytes, bytes), torsh_text_blocks(heap->peak_blocks, blocks),
			   torsh_size_duration(at_ns, at));
	if (process->has_rss_peak)
		printf("highest resident set: %s%s%s%s\n", torsh_size_exact(process->rss_peak_bytes, bytes),
		       process->rss_peak_source ? " (" : "", process->rss_peak_source ? process->rss_peak_source : "",
		       process->rss_peak_source ? ")" : "");
	if (process->vm.is_there)
		printf("most mapped: %s\n", torsh_size_exact(process->vm.peak_bytes, bytes));
}

static void print_text(const struct view *view)
{
	struct profile_process *const shown[] = {(struct profile_process *)view->process};
	size_t n_left = view->heap.n - view->n_heap;

	torsh_text_processes(stdout, shown, 1, 1);
	if (view->reading->n_processes > 1)
		printf("of %zu processes this has the highest peak; --pid shows another\n", view->reading->n_processes);
	print_heading(view);
	torsh_text_events(stdout, shown, 1);
	torsh_text_notes(stdout, view->reading->profile, shown, 1);
	for (size_t i = 0; i < view->n_heap; i++)
		torsh_text_holder(stdout, i + 1, &view->heap.items[i], view->process->heap.peak_bytes, false);
	if (n_left)
		printf("\n... and %zu smaller ones; --limit 0 shows all\n", n_left);
	if (!view->n_mapped)
		return;
	putchar('\n');
	torsh_text_heading(stdout, "address space when most was mapped");
	for (size_t i = 0; i < view->n_mapped; i++)
		torsh_text_holder(stdout, i + 1, &view->mapped.items[i], view->process->vm.peak_bytes, false);
}

int torsh_command_peak(int argc, char **argv)
{
	struct read_options options = {0};
	struct reading reading;
	struct view view = {.reading = &reading};

	torsh_options_parse(argc, argv, doc, NULL, NULL, NULL, &options);
	torsh_reading_open(&reading, &options);
	view.process = choose_process(&reading);
	view.heap.depth = view.mapped.depth = options.depth;
	view.heap.view = view.mapped.view = options.view;
	torsh_holders_collect(&view.heap, view.process, HOLDERS_PEAK);
	torsh_holders_collect(&view.mapped, view.process, HOLDERS_MAPPED);
	torsh_holders_merge_stacks(&view.heap, reading.symbols);
	torsh_holders_merge_stacks(&view.mapped, reading.symbols);
	view.n_heap = torsh_options_choose(&options, &view.heap, reading.symbols, TEXT_LIMIT);
	view.n_mapped = torsh_options_choose(&options, &view.mapped, reading.symbols, TEXT_LIMIT_MAPPED);
	if (options.is_json)
		print_json(&view);
	else
		print_text(&view);
	torsh_holders_free(&view.heap);
	torsh_holders_free(&view.mapped);
	torsh_reading_close(&reading, &options);
	return TORSH_EXIT_DONE;
}
