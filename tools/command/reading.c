/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Opens the recording that a command's options select, and picks the allocation sites to print. */
#include "tools/command/reading.h"

#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/base/memory.h"
#include "tools/recording/read.h"
#include "tools/report/parts.h"
#include "tools/report/selection.h"

/*
 * Stacks that look alike are merged once they have names: so many more than the limit get names
 * for that.
 */
#define NAMED_BESIDE 100

static bool is_wanted(const struct recorded_process *process, const struct read_options *options)
{
	uint32_t rank;

	if (options->has_pid && process->pid != options->pid)
		return false;
	return !options->has_rank ||
	       (torsh_recording_rank(process->rank, &rank) && rank == options->rank);
}

static void select_processes(struct reading *reading, const struct read_options *options)
{
	const struct recording *recording = reading->recording;

	reading->processes =
		torsh_need_items(NULL, 0, recording->n_processes, sizeof(*reading->processes));
	reading->unfollowed =
		torsh_need_items(NULL, 0, recording->n_unfollowed, sizeof(*reading->unfollowed));
	for (size_t i = 0; i < recording->n_unfollowed; i++) {
		if (is_wanted(recording->unfollowed[i], options))
			reading->unfollowed[reading->n_unfollowed++] = recording->unfollowed[i];
	}
	for (size_t i = 0; i < recording->n_processes; i++) {
		if (is_wanted(recording->processes[i], options))
			reading->processes[reading->n_processes++] = recording->processes[i];
	}
	if (reading->n_processes)
		return;
	if (options->has_rank)
		torsh_die("%s has no process of rank %u%s", recording->path, options->rank,
			  options->has_pid ? " with that pid" : "");
	if (options->has_pid && reading->n_unfollowed)
		torsh_die("process %u was not followed: %s", options->pid,
			  reading->unfollowed[0]->not_followed);
	if (options->has_pid)
		torsh_die("%s has no process %u", recording->path, options->pid);
	torsh_die("%s has no process in it: its writer ended before one was recorded",
		  recording->path);
}

/* A window depends on whether the times of live blocks are exact. */
static unsigned tables_without(const struct read_options *options)
{
	return options->without & ~(options->window.is_some ? RECORDING_USAGE : 0u);
}

void torsh_reading_open(struct reading *reading, struct read_options *options)
{
	char error[512] = "it can't be read";
	char *path = torsh_recording_locate(options->path, error, sizeof(error));

	*reading = (struct reading){0};
	if (!path)
		torsh_die("%s", error);
	reading->recording = torsh_recording_read(path, READ_WAIT_S, tables_without(options), error,
						  sizeof(error));
	if (!reading->recording)
		torsh_die("%s", error);
	free(path);
	select_processes(reading, options);
	reading->symbols = torsh_symbols_create(!options->without_lines);
	reading->suppress = &options->suppress;
	for (size_t i = 0; reading->recording->is_being_written && i < reading->n_processes; i++) {
		if (torsh_recording_is_alive(reading->recording, reading->processes[i])) {
			torsh_warn("still running: as of its last checkpoint");
			break;
		}
	}
}

void torsh_reading_prepass(struct prepass *prepass, struct reading *reading,
			   const struct read_options *options)
{
	torsh_prepass_make(prepass, reading->recording, reading->processes, reading->n_processes);
	if (!torsh_prepass_choose(prepass, &options->steps) && options->steps.is_some)
		torsh_die("%s has no such steps; torsh steps lists them", reading->recording->path);
	if (!options->window.is_some)
		return;
	torsh_windows_make(&reading->windows, &options->window, reading->recording,
			   reading->processes, reading->n_processes);
	torsh_prepass_restrict(prepass, &reading->windows);
}

void torsh_reading_drop(struct reading *reading)
{
	torsh_symbols_close_files(reading->symbols);
	torsh_windows_free(&reading->windows);
	torsh_recording_destroy(reading->recording);
	reading->recording = NULL;
	reading->n_processes = reading->n_unfollowed = 0;
	torsh_memory_trim();
}

void torsh_reading_close(struct reading *reading, struct read_options *options)
{
	torsh_windows_free(&reading->windows);
	torsh_symbols_destroy(reading->symbols);
	torsh_recording_destroy(reading->recording);
	free(reading->processes);
	free(reading->unfollowed);
	torsh_suppress_free(&options->suppress);
}

/* Sort the first n sites at least. */
static void sort(struct allocation_sites *sites, const struct read_options *options, size_t n)
{
	/* Of all sites those of that size are shown. */
	if (options->min_bytes)
		torsh_sites_sort(sites, options->order);
	else
		torsh_sites_sort_first(sites, options->order, n);
}

void torsh_reading_end_views(const struct reading *reading)
{
	for (size_t i = 0; i < reading->n_processes; i++)
		torsh_stack_views_forget(reading->processes[i]);
	torsh_memory_trim();
}

void torsh_options_collect(const struct read_options *options, struct allocation_sites *sites,
			   const struct sites_source *source, bool is_alike,
			   struct symbols *symbols)
{
	size_t limit = torsh_options_limit(options, UINT32_MAX, UINT32_MAX);

	/* Named sites may be merged: as many as are named come after them. */
	if (options->is_json && limit < UINT32_MAX && !options->min_bytes && !sites->depth) {
		torsh_sites_collect_first(sites, source, is_alike, options->order,
					  2 * (limit + NAMED_BESIDE), symbols);
		return;
	}
	for (size_t i = 0; i < source->n_processes; i++)
		torsh_sites_collect(sites, source->processes[i], source->what);
	torsh_sites_merge_stacks(sites, symbols);
	if (is_alike)
		torsh_sites_merge_alike(sites, symbols);
}

/*
 * A line may call from hundreds of addresses, as macros and inlined functions do: sites are named,
 * and merged with those that look like them, until all that are shown have names.
 */
size_t torsh_options_choose(const struct read_options *options, struct allocation_sites *sites,
			    struct symbols *symbols, size_t text_limit)
{
	size_t n_beside = NAMED_BESIDE, n_before, n_large, n_shown, n_named;

	do {
		n_before = sites->n;
		sort(sites, options, torsh_options_limit(options, sites->n, text_limit) + n_beside);
		n_large = torsh_sites_put_large_first(sites, options->min_bytes);
		n_shown = torsh_options_limit(options, n_large, text_limit);
		n_named = n_large - n_shown > n_beside ? n_shown + n_beside : n_large;
		if (options->is_json)
			torsh_sites_find_frames(sites, symbols, n_named);
		torsh_sites_name(sites, symbols, n_named);
		n_beside *= 2;
	} while (sites->n < n_before);
	return n_shown;
}

void torsh_reading_end_json(struct json_writer *json, const struct reading *reading,
			    const struct prepass *prepass)
{
	torsh_parts_emit_events(json, reading->processes, reading->n_processes);
	torsh_parts_emit_recording(json, reading->recording);
	torsh_selection_members(json, reading->processes, reading->n_processes, prepass);
	torsh_json_end_object(json);
	torsh_json_close(json);
}

void torsh_device_reading_open(struct device_reading *devices, const struct reading *reading)
{
	torsh_prepass_make(&devices->prepass, reading->recording, reading->processes,
			   reading->n_processes);
	torsh_device_memory_collect(&devices->memory, reading->recording, reading->processes,
				    reading->n_processes, &devices->prepass);
}

void torsh_device_reading_close(struct device_reading *devices)
{
	torsh_device_memory_free(&devices->memory);
	torsh_prepass_free(&devices->prepass);
}
