/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh tensors: what held tensors at the peak of their memory, per device. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/device.h"
#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/command/arguments.h"
#include "tools/command/command.h"
#include "tools/command/reading.h"
#include "tools/memory/tensors.h"
#include "tools/report/parts.h"
#include "tools/report/text.h"
#include "tools/terminal/table.h"

#define TEXT_LIMIT 20

static const char doc[] =
	"Show the holders of tensors at the moment when their memory on a device was largest.\v"
	"The moment is exact for what was allocated since the recording began. Operators that only make memory, such as "
	"aten::empty, stand for the operator that called them. Reserved is what a caching allocator took from the device, as "
	"it reports; fragmentation is what it reserved and did not allocate.";

enum { KEY_GROUP = 0x2000 };

static const struct argp_option own_options[] = {
	{"group", KEY_GROUP, "KEY", 0, "operator (default, with its module) or stack", 0},
	{0},
};

static error_t parse_tensors(int key, char *argument, struct argp_state *state)
{
	enum tensor_group *group = state->input;

	if (key != KEY_GROUP)
		return ARGP_ERR_UNKNOWN;
	*group = (enum tensor_group)torsh_argument_choice(state, "group", torsh_tensor_group_names,
							  N_TENSOR_GROUPS, argument);
	return 0;
}

struct view {
	const struct reading *reading;
	const struct read_options *options;
	struct prepass prepass;
	struct tensors tensors;
	enum tensor_group group;
};

static int compare_sites(const void *a, const void *b)
{
	const struct tensor_site *x = a, *y = b;
	int rc = (x->bytes < y->bytes) - (x->bytes > y->bytes);

	if (rc == 0)
		rc = strcmp(x->operator_name ? x->operator_name : "",
			    y->operator_name ? y->operator_name : "");
	if (rc == 0)
		rc = strcmp(x->module ? x->module : "", y->module ? y->module : "");
	return rc ? rc : (x->stack > y->stack) - (x->stack < y->stack);
}

/* Sort sites that held something first; returns their number. */
static size_t sort_sites(struct tensor_device *device)
{
	size_t n = 0;

	if (device->n_sites)
		qsort(device->sites, device->n_sites, sizeof(*device->sites), compare_sites);
	while (n < device->n_sites && device->sites[n].bytes)
		n++;
	return n;
}

static void emit_site(struct json_writer *json, const struct view *view,
		      const struct tensor_device *device, const struct tensor_site *site)
{
	torsh_json_begin_object(json, NULL);
	torsh_json_put_u64(json, "bytes", site->bytes);
	torsh_json_put_u64(json, "blocks", site->blocks);
	if (view->group == TENSORS_BY_STACK) {
		torsh_parts_emit_recorded_stack(json, device->process, site->stack,
						view->reading->symbols, view->options->view);
		torsh_json_end_object(json);
		return;
	}
	torsh_json_put_text(json, "operator", site->operator_name);
	torsh_json_put_text(json, "module", site->module);
	torsh_json_put_text(json, "phase",
			    site->operator_name ? torsh_phase_names[site->phase] : NULL);
	torsh_json_end_object(json);
}

/* Emit a value of an allocator that reserves memory; null for others. */
static void emit_reserving(struct json_writer *json, const char *name,
			   const struct tensor_device *device, uint64_t number)
{
	torsh_json_put_known(json, name, device->largest_reserved, number);
}

static uint64_t fragmentation(const struct tensor_sums *sums)
{
	return sums->reserved > sums->allocated ? sums->reserved - sums->allocated : 0;
}

static void emit_sums(struct json_writer *json, const struct tensor_device *device)
{
	emit_reserving(json, "allocated_at_peak_bytes", device, device->at_peak.allocated);
	emit_reserving(json, "reserved_at_peak_bytes", device, device->at_peak.reserved);
	emit_reserving(json, "fragmentation_at_peak_bytes", device,
		       fragmentation(&device->at_peak));
	emit_reserving(json, "allocated_at_end_bytes", device, device->at_end.allocated);
	emit_reserving(json, "reserved_at_end_bytes", device, device->at_end.reserved);
	emit_reserving(json, "fragmentation_at_end_bytes", device, fragmentation(&device->at_end));
	emit_reserving(json, "fragmentation_peak_bytes", device, device->largest_fragmentation);
	emit_reserving(json, "fragmentation_peak_ns", device, device->fragmentation_ns);
}

static void emit_device(struct json_writer *json, const struct view *view,
			struct tensor_device *device)
{
	size_t n_all = sort_sites(device),
	       n = torsh_options_limit(view->options, n_all, TEXT_LIMIT);
	char name[DEVICE_NAME_BYTES];

	torsh_json_begin_object(json, NULL);
	torsh_json_put_u64(json, "pid", device->process->pid);
	torsh_json_put_text(json, "device", torsh_device_name(device->device, name));
	torsh_json_put_u64(json, "peak_bytes", device->peak_bytes);
	torsh_json_put_u64(json, "peak_blocks", device->peak_blocks);
	torsh_json_put_u64(json, "at_ns", device->peak_ns);
	torsh_json_put_known(json, "allocated_peak_bytes", device->largest_allocated,
			     device->largest_allocated);
	torsh_json_put_known(json, "reserved_peak_bytes", device->largest_reserved,
			     device->largest_reserved);
	torsh_json_put_known(json, "allocated_then_bytes", device->largest_reserved,
			     device->allocated_then);
	emit_sums(json, device);
	torsh_json_put_u64(json, "held_bytes", device->held_bytes);
	torsh_json_put_u64(json, "held_blocks", device->held_blocks);
	torsh_json_put_u64(json, "allocs", device->allocs);
	torsh_json_put_u64(json, "frees", device->frees);
	torsh_json_put_u64(json, "unknown_frees", device->unknown_frees);
	torsh_json_put_u64(json, "out_of_memory", device->out_of_memory);
	torsh_json_begin_array(json, "holders");
	for (size_t i = 0; i < n; i++)
		emit_site(json, view, device, &device->sites[i]);
	torsh_json_end_array(json);
	torsh_json_put_u64(json, "omitted", n_all - n);
	torsh_json_end_object(json);
}

static void print_json(const struct view *view)
{
	const struct reading *reading = view->reading;
	struct json_writer json;

	torsh_json_open(&json, stdout);
	torsh_json_begin_report(&json);
	torsh_json_put_u64(&json, "version", 1);
	torsh_json_put_text(&json, "group", torsh_tensor_group_names[view->group]);
	torsh_json_begin_lines(&json, "devices");
	for (size_t i = 0; i < view->tensors.n; i++)
		emit_device(&json, view, &view->tensors.items[i]);
	torsh_json_end_array(&json);
	torsh_parts_emit_events(&json, reading->processes, reading->n_processes);
	torsh_parts_emit_recording(&json, reading->recording);
	torsh_parts_emit_notes(&json, reading->processes, reading->n_processes);
	torsh_json_end_object(&json);
	torsh_json_close(&json);
}

static const struct table_column columns[] = {
	{"bytes", TABLE_NUMBER, .drop = 0},
	{"share", TABLE_NUMBER, .drop = 0},
	{"", TABLE_BAR, .drop = 1},
	{"blocks", TABLE_NUMBER, .drop = 0},
	{"allocated by", TABLE_NAME, .cut = CUT_MIDDLE},
};

struct below {
	const struct view *view;
	const struct tensor_device *device;
	const struct tensor_site *site;
};

static void print_stack(void *context, FILE *out)
{
	const struct below *below = context;

	torsh_text_recorded_stack(out, below->device->process, below->site->stack,
				  below->view->reading->symbols, below->view->options->view);
}

static void put_site(struct table *table, struct below *below)
{
	const struct tensor_site *site = below->site;
	double peak = (double)below->device->peak_bytes, bytes = (double)site->bytes;

	torsh_table_bytes(table, site->bytes);
	torsh_table_percent(table, bytes, peak);
	torsh_table_bar(table, peak > 0 ? bytes / peak : 0);
	torsh_table_count(table, site->blocks);
	if (below->view->group == TENSORS_BY_OPERATOR) {
		torsh_table_cell(table, "%s%s%s%s%s",
				 site->operator_name ? site->operator_name : "(in no operator)",
				 site->module ? " in " : "", site->module ? site->module : "",
				 site->operator_name ? ", " : "",
				 site->operator_name ? torsh_phase_names[site->phase] : "");
		return;
	}
	torsh_table_cell(table, "(the stack below)");
	torsh_table_below(table, print_stack, below);
}

static void print_sites(const struct view *view, const struct tensor_device *device, size_t n)
{
	struct table *table = torsh_table_create(columns, sizeof(columns) / sizeof(*columns));
	struct below *below = torsh_need_items(NULL, 0, n, sizeof(*below));

	for (size_t i = 0; i < n; i++) {
		below[i] = (struct below){view, device, &device->sites[i]};
		put_site(table, &below[i]);
	}
	torsh_table_print(table, stdout);
	free(below);
}

static void print_sums(const char *when, const struct tensor_sums *sums)
{
	char allocated[SIZE_TEXT_BYTES], reserved[SIZE_TEXT_BYTES], unused[SIZE_TEXT_BYTES];

	printf("%s: %s allocated, %s reserved, fragmentation %s\n", when,
	       torsh_size_human(sums->allocated, allocated),
	       torsh_size_human(sums->reserved, reserved),
	       torsh_size_human(fragmentation(sums), unused));
}

/* Print the values that a caching allocator reports. */
static void print_allocator(const struct tensor_device *device)
{
	char bytes[SIZE_TEXT_BYTES], other[SIZE_TEXT_BYTES];

	printf("most reserved: %s, of which %s were allocated then\n",
	       torsh_size_exact(device->largest_reserved, bytes),
	       torsh_size_human(device->allocated_then, other));
	print_sums("at the peak", &device->at_peak);
	print_sums("at the end", &device->at_end);
	printf("largest fragmentation: %s, %s after the start\n",
	       torsh_size_exact(device->largest_fragmentation, bytes),
	       torsh_size_duration(device->fragmentation_ns, other));
}

static void print_device(const struct view *view, struct tensor_device *device)
{
	size_t n_all = sort_sites(device),
	       n = torsh_options_limit(view->options, n_all, TEXT_LIMIT);
	char bytes[SIZE_TEXT_BYTES], other[SIZE_TEXT_BYTES], blocks[64], name[DEVICE_NAME_BYTES],
		count[SIZE_TEXT_BYTES];

	putchar('\n');
	torsh_text_heading(stdout,
			   "%s of pid %" PRIu32 ": peak of tensors %s in %s, %s after the start",
			   torsh_device_name(device->device, name), device->process->pid,
			   torsh_size_exact(device->peak_bytes, bytes),
			   torsh_text_blocks(device->peak_blocks, blocks),
			   torsh_size_duration(device->peak_ns, other));
	if (device->largest_reserved)
		print_allocator(device);
	printf("%s; %s held at the end\n", torsh_size_counted(device->allocs, "allocation", count),
	       torsh_size_exact(device->held_bytes, bytes));
	if (device->unknown_frees)
		printf("%s of what was allocated before the recording began\n",
		       torsh_size_counted(device->unknown_frees, "free", count));
	if (device->out_of_memory)
		printf("out of memory %s\n",
		       torsh_size_counted(device->out_of_memory, "time", count));
	print_sites(view, device, n);
	torsh_text_more(stdout, n_all - n);
}

static void print_text(const struct view *view)
{
	const struct reading *reading = view->reading;

	torsh_text_caveats(stdout, reading->recording, reading->processes, reading->n_processes);
	if (!view->tensors.n)
		puts("No tensors were recorded.");
	for (size_t i = 0; i < view->tensors.n; i++)
		print_device(view, &view->tensors.items[i]);
}

int torsh_command_tensors(int argc, char **argv)
{
	struct read_options options = {.without = READING_WITHOUT_HEAP};
	struct reading reading;
	struct view view = {.reading = &reading, .options = &options};

	torsh_options_parse_timeline(argc, argv, doc, own_options, parse_tensors, &view.group,
				     &options);
	torsh_reading_open(&reading, &options);
	torsh_prepass_make(&view.prepass, reading.recording, reading.processes,
			   reading.n_processes);
	torsh_tensors_collect(&view.tensors, view.group, reading.recording, reading.processes,
			      reading.n_processes, &view.prepass);
	if (options.is_json)
		print_json(&view);
	else
		print_text(&view);
	torsh_tensors_free(&view.tensors);
	torsh_prepass_free(&view.prepass);
	torsh_reading_close(&reading, &options);
	return TORSH_EXIT_DONE;
}
