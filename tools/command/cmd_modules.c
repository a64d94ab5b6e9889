/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh modules: time, memory and FLOPs of nn.Modules. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/command/command.h"
#include "tools/command/options.h"
#include "tools/ops/module_totals.h"
#include "tools/report/parts.h"
#include "tools/report/selection.h"
#include "tools/report/text.h"

#define TEXT_LIMIT 40
#define PROCESSES_SHOWN 12
#define NAME_COLUMNS 48

static const char doc[] =
	"Show the nn.Modules that were called: time in their forward, in operators of forward and of backward, FLOPs.\v"
	"The operators of backward belong to the module whose forward made them, by their sequence numbers. Self is without "
	"the modules inside, and so is what operators took in forward; forward, backward, FLOPs and device are with those that "
	"were called inside. FLOPs and the times of devices are those of forward and backward.";

static int compare_totals(const void *a, const void *b)
{
	const struct module_total *x = a, *y = b;

	return x->total_ns != y->total_ns
		       ? (x->total_ns < y->total_ns) - (x->total_ns > y->total_ns)
		       : strcmp(x->name, y->name);
}

struct view {
	const struct reading *reading;
	struct prepass prepass;
	struct module_totals totals;
	size_t n;
	bool has_tensors;
};

static cJSON *make_flops(const struct view *view, uint64_t flops)
{
	return view->reading->recording->without_flops ? torsh_json_text(NULL)
						       : torsh_json_u64(flops);
}

static cJSON *make_device(const struct view *view, uint64_t ns)
{
	return view->totals.has_devices ? torsh_json_u64(ns) : torsh_json_text(NULL);
}

static cJSON *make_total(const struct view *view, const struct module_total *total)
{
	cJSON *object = torsh_json_object();

	torsh_json_set(object, "name", torsh_json_text(*total->name ? total->name : NULL));
	torsh_json_set(object, "calls", torsh_json_u64(total->calls));
	torsh_json_set(object, "total_ns", torsh_json_u64(total->total_ns));
	torsh_json_set(object, "self_ns", torsh_json_u64(total->self_ns));
	torsh_json_set(object, "operators", torsh_json_u64(total->operators));
	torsh_json_set(object, "operators_ns", torsh_json_u64(total->operators_ns));
	torsh_json_set(object, "backward_ns", torsh_json_u64(total->whole_backward_ns));
	torsh_json_set(object, "self_backward_ns", torsh_json_u64(total->backward_ns));
	torsh_json_set(object, "device_ns", make_device(view, total->whole_device_ns));
	torsh_json_set(object, "self_device_ns", make_device(view, total->device_ns));
	torsh_json_set(object, "self_flops", make_flops(view, total->flops));
	torsh_json_set(object, "self_flops_all", make_flops(view, total->flops_all));
	torsh_json_set(object, "flops", make_flops(view, total->whole_flops));
	torsh_json_set(object, "flops_all", make_flops(view, total->whole_flops_all));
	torsh_json_set(object, "self_allocated_bytes",
		       view->has_tensors ? torsh_json_u64(total->allocated_bytes)
					 : torsh_json_text(NULL));
	return object;
}

static void print_json(const struct view *view)
{
	const struct reading *reading = view->reading;
	struct json json;

	torsh_json_begin(&json, stdout);
	torsh_json_member(&json, "version", torsh_json_u64(1));
	torsh_json_array(&json, "modules");
	for (size_t i = 0; i < view->n; i++)
		torsh_json_item(&json, make_total(view, &view->totals.items[i]));
	torsh_json_array_end(&json);
	torsh_json_member(&json, "omitted", torsh_json_u64(view->totals.n - view->n));
	torsh_json_member(&json, "events",
			  torsh_parts_events(reading->processes, reading->n_processes));
	torsh_json_member(&json, "recording", torsh_parts_recording(reading->recording));
	torsh_selection_members(&json, reading->processes, reading->n_processes, &view->prepass);
	torsh_json_end(&json);
}

static void print_total(const struct view *view, const struct module_total *total)
{
	bool has_flops = !view->reading->recording->without_flops;
	char text[SIZE_TEXT_BYTES];

	printf("%-*s", NAME_COLUMNS, *total->name ? total->name : "(operators in no module)");
	torsh_text_cell(stdout, torsh_size_grouped(total->calls, text));
	torsh_text_cell(stdout, torsh_size_duration(total->total_ns, text));
	torsh_text_cell(stdout, torsh_size_duration(total->self_ns, text));
	torsh_text_cell(stdout, torsh_size_duration(total->operators_ns, text));
	torsh_text_cell(stdout, torsh_size_duration(total->whole_backward_ns, text));
	if (view->totals.has_devices) {
		torsh_text_cell(stdout, torsh_size_duration(total->device_ns, text));
		torsh_text_cell(stdout, torsh_size_duration(total->whole_device_ns, text));
	}
	torsh_text_cell(stdout,
			view->has_tensors ? torsh_size_human(total->allocated_bytes, text) : "-");
	torsh_text_cell(stdout, has_flops ? torsh_size_si(total->flops_all, text) : "-");
	torsh_text_cell(stdout, has_flops ? torsh_size_si(total->whole_flops_all, text) : "-");
	putchar('\n');
}

static void print_text(const struct view *view)
{
	const struct reading *reading = view->reading;
	uint64_t n_modules = 0;

	for (size_t i = 0; i < view->prepass.n; i++)
		n_modules += view->prepass.items[i].n_modules;
	torsh_text_begin(stdout, reading->recording, reading->processes, reading->n_processes,
			 PROCESSES_SHOWN);
	torsh_text_events(stdout, reading->processes, reading->n_processes);
	torsh_text_notes(stdout, reading->recording, reading->processes, reading->n_processes);
	torsh_selection_text(stdout, &view->prepass);
	if (!n_modules) {
		puts("No calls of modules were recorded.");
		return;
	}
	printf("\n%-*s %10s %10s %10s %10s %10s", NAME_COLUMNS, "module", "calls", "forward",
	       "self", "operators", "backward");
	if (view->totals.has_devices)
		printf(" %10s %10s", "self dev", "device");
	printf(" %10s %10s %10s\n", "self mem", "self FLOPs", "FLOPs");
	for (size_t i = 0; i < view->n; i++)
		print_total(view, &view->totals.items[i]);
	if (view->n < view->totals.n)
		printf("... and %zu more; --limit 0 shows all\n", view->totals.n - view->n);
}

int torsh_command_modules(int argc, char **argv)
{
	struct read_options options = {0};
	struct reading reading;
	struct view view = {.reading = &reading};

	torsh_options_parse_steps(argc, argv, doc, NULL, NULL, NULL, &options);
	torsh_reading_open(&reading, &options);
	torsh_reading_prepass(&view.prepass, &reading, &options);
	for (size_t i = 0; i < view.prepass.n; i++)
		view.has_tensors = view.has_tensors || view.prepass.items[i].n_tensors;
	torsh_module_totals_collect(&view.totals, reading.recording, reading.processes,
				    reading.n_processes, &view.prepass);
	if (view.totals.n)
		qsort(view.totals.items, view.totals.n, sizeof(*view.totals.items), compare_totals);
	view.n = torsh_options_limit(&options, view.totals.n, TEXT_LIMIT);
	if (options.is_json)
		print_json(&view);
	else
		print_text(&view);
	torsh_module_totals_free(&view.totals);
	torsh_prepass_free(&view.prepass);
	torsh_reading_close(&reading, &options);
	return TORSH_EXIT_DONE;
}
