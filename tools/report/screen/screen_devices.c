/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/screen/screen_devices.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/frames/short_name.h"
#include "tools/report/screen/screen_line.h"
#include "tools/report/owners/owners_report.h"

#define GROUPS_SHOWN 3u
#define PLACES_SHOWN 3u

/* Returns why no device activity was recorded: the first process's reason; NULL: unknown. */
static const char *reason_of(const struct kernels *kernels)
{
	const char *reason = NULL;

	for (size_t i = 0; i < kernels->n_processes && !reason; i++) {
		const struct kernel_process *process = &kernels->processes[i];

		if (process->has_mode)
			reason = torsh_timeline_label(process->process, process->mode.reason);
	}
	return reason && *reason ? reason : NULL;
}

static void print_heading(const struct overview_devices *devices)
{
	const struct kernels *kernels = &devices->kernels;
	const char *reason = reason_of(kernels);
	char total[SIZE_TEXT_BYTES], share[SIZE_TEXT_BYTES];

	if (!devices->n_groups)
		torsh_screen_section("DEVICES", "none was seen at work%s%s", reason ? ": " : "",
				     reason ? reason : "");
	else if (torsh_prepass_has_operators(devices->prepass))
		torsh_screen_section("DEVICES",
				     "%s of kernels, copies and memsets, %s of it in operators",
				     torsh_size_duration(kernels->total_ns, total),
				     torsh_size_percent(torsh_kernels_share(kernels), 1, share));
	else
		torsh_screen_section("DEVICES", "%s of kernels, copies and memsets",
				     torsh_size_duration(kernels->total_ns, total));
	if (devices->n_groups && reason)
		torsh_screen_line(STYLE_WARNING, 1, "%*s%s", SCREEN_INDENT, "", reason);
}

/* Returns the operators of a kernel: the one with most time, and how many there are. */
static char *operators_text(const struct kernel_group *group)
{
	const char *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < group->n; i++) {
		if (!group->rows[i].operator_name)
			continue;
		first = first ? first : group->rows[i].operator_name;
		n++;
	}
	if (!first)
		return torsh_need_text("%s", "");
	return n > 1 ? torsh_need_text(" for %s and others", first)
		     : torsh_need_text(" for %s", first);
}

static void print_group(const struct overview_devices *devices, const struct kernel_group *group,
			struct symbols *symbols)
{
	uint64_t all_ns = devices->kernels.total_ns;
	const struct kernel_row *row = group->rows;
	char total[SIZE_TEXT_BYTES], calls[SIZE_TEXT_BYTES], share[SIZE_TEXT_BYTES];
	char *name = torsh_short_function(row->what == DEVICE_KERNEL
						  ? torsh_symbols_demangle(symbols, row->name)
						  : row->name);
	char *operators = operators_text(group);

	torsh_screen_line(STYLE_PLAIN, 1, "%*s%9s %6s  %s%s%s, %s", SCREEN_INDENT, "",
			  group->timed ? torsh_size_duration(group->total_ns, total) : "-",
			  torsh_size_percent((double)group->total_ns, (double)all_ns, share),
			  row->what == DEVICE_COPY ? "copy " : "", name, operators,
			  torsh_size_counted(group->calls, "call", calls));
	free(name);
	free(operators);
}

static void print_memory(const struct memory_of_devices *memory)
{
	char name[DEVICE_SCOPE_NAME_BYTES], peak[SIZE_TEXT_BYTES], end[SIZE_TEXT_BYTES];
	size_t n = 0;

	for (size_t i = 0; i < memory->n; i++) {
		const struct device_process *process = &memory->items[i];

		for (size_t k = 0; k < process->n_places && n < PLACES_SHOWN; k++, n++) {
			const struct device_scope *scope = &process->blocks.scopes[k];

			torsh_screen_line(STYLE_PLAIN, 1,
					  "%*s%s of pid %" PRIu32 ": at most %s, %s at the end",
					  SCREEN_INDENT, "", torsh_device_scope_name(scope, name),
					  process->process->pid,
					  torsh_size_human(process->places[k].peak_bytes, peak),
					  torsh_size_human(scope->bytes, end));
		}
	}
}

/* What the highest peak consisted of. */
static void print_owners(const struct overview_devices *devices)
{
	struct owner_sum sums[N_OWNER_KINDS];
	char name[DEVICE_SCOPE_NAME_BYTES], bytes[SIZE_TEXT_BYTES], *list = NULL;
	size_t n;

	if (!devices->owned_by)
		return;
	n = torsh_owners_sums(&devices->owners, sums);
	for (size_t i = 0; i < n && sums[i].bytes > 0; i++)
		list = torsh_screen_append(list, "%s %s", torsh_owner_names[sums[i].kind],
					   torsh_size_human((uint64_t)sums[i].bytes, bytes));
	if (list)
		torsh_screen_line(
			STYLE_PLAIN, 2, "%*sat the peak of %s: %s", SCREEN_INDENT, "",
			torsh_device_scope_name(
				&devices->owned_by->blocks.scopes[devices->owned_place], name),
			list);
	free(list);
}

void torsh_screen_devices(const struct overview_devices *devices, struct symbols *symbols)
{
	if (!devices->are_there)
		return;
	print_heading(devices);
	for (size_t i = 0; i < devices->n_groups && i < GROUPS_SHOWN; i++)
		print_group(devices, &devices->groups[i], symbols);
	print_memory(&devices->memory);
	print_owners(devices);
}
