/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh peak as text: the moment, then what held most. */
#include <inttypes.h>
#include <stdlib.h>

#include "tools/base/size.h"
#include "tools/command/peak/peak_census.h"
#include "tools/command/peak/peak_view.h"
#include "tools/report/device_refusals_report.h"
#include "tools/report/owners/owners_report.h"
#include "tools/report/sites/interval_text.h"
#include "tools/report/sites/site_rows.h"
#include "tools/report/text.h"

#define PROCESSES_SHOWN 12

/* Of what follows, unless it is the peak. */
static void print_moment(const struct peak_view *view)
{
	const struct device_view *device = &view->device;
	uint64_t start_ns = view->peak.process->start_ns, blocks, bytes;
	char size[SIZE_TEXT_BYTES], at[SIZE_TEXT_BYTES];

	if (device->moment_kind == MEMORY_AT_PEAK)
		return;
	torsh_sites_sum(&view->heap, &blocks, &bytes);
	torsh_text_heading(
		stdout, "%s at the requested moment (%s), %s after the start: %s", device->name,
		torsh_memory_moment_names[device->moment_kind],
		torsh_size_duration(device->at.at_ns > start_ns ? device->at.at_ns - start_ns : 0,
				    at),
		torsh_size_exact(bytes, size));
}

static void print_device_heading(const struct peak_view *view)
{
	const struct device_view *device = &view->device;
	uint64_t start_ns = view->peak.process->start_ns;
	char bytes[SIZE_TEXT_BYTES], blocks[64], at[SIZE_TEXT_BYTES];

	if (device->is_all) {
		torsh_text_heading(stdout, "peak of the heap and all devices: %s",
				   torsh_size_exact(view->peak.bytes, bytes));
		torsh_device_text(stdout, device->process, DEVICE_NO_PLACE, DEVICE_AT_PEAK);
		torsh_shared_devices_text(stdout, &device->shared,
					  torsh_peak_device_shared(device));
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
	torsh_shared_devices_text(stdout, &device->shared, torsh_peak_device_shared(device));
	torsh_device_refusals_text(stdout, device->process, device->place, view->reading->symbols);
	print_moment(view);
	if (device->has_owners)
		torsh_owners_text(stdout, &device->owners, 0);
}

static void print_heading(const struct peak_view *view)
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
	torsh_interval_text(stdout, "", view->peak.bytes, view->peak.blocks, view->variance);
	if (view->peak.late_changes)
		printf("%" PRIu64
		       " changes reached the writer after younger ones of other processes: the peak of all together may "
		       "have been higher\n",
		       view->peak.late_changes);
	if (process)
		torsh_text_resident(stdout, process);
	if (process && process->vm.is_there)
		printf("most mapped: %s\n", torsh_size_exact(process->vm.peak_bytes, bytes));
}

/* Print each process's part of the sum. */
static void print_parts(const struct peak_view *view)
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

static void print_sites(const struct peak_view *view, const struct allocation_site *items, size_t n,
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

static void print_mapped(const struct peak_view *view)
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

/* What imports held, which is many small sites, is a line. */
static void print_imports(const struct peak_view *view)
{
	const struct kept_imports *imports = &view->imports;
	char bytes[SIZE_TEXT_BYTES], share[SIZE_TEXT_BYTES], *packages;

	if (!imports->n)
		return;
	packages = torsh_text_imports(imports);
	torsh_text_heading(
		stdout, "Imports of packages held %s of the heap, %s: %s  (-v lists their stacks)",
		torsh_size_human(imports->bytes, bytes),
		torsh_size_percent((double)imports->bytes, (double)view->peak.bytes, share),
		packages);
	free(packages);
}

/* The whole that shares of sites are of. */
static uint64_t held_whole(const struct peak_view *view)
{
	uint64_t blocks, bytes;

	if (!view->device.name || view->device.moment_kind == MEMORY_AT_PEAK)
		return view->peak.bytes;
	torsh_sites_sum(&view->heap, &blocks, &bytes);
	return bytes;
}

static void print_held(const struct peak_view *view)
{
	size_t n_left = view->heap.n - view->n_heap;

	print_imports(view);
	print_sites(view, view->heap.items, view->n_heap, held_whole(view), "HELD");
	torsh_text_smaller(stdout, n_left);
}

/* Sites with most memory are first. */
void torsh_peak_text(const struct peak_view *view)
{
	struct recorded_process *one[1], *const *shown;
	size_t n_shown = torsh_peak_shown(view, one, &shown);
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
	if (view->peak.process && !view->device.name)
		torsh_peak_census_text(view->peak.process);
}
