/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The recording that a reading command's options select, open while the command runs. */
#ifndef TORSH_COMMAND_READING_H
#define TORSH_COMMAND_READING_H

#include <stddef.h>

#include "tools/base/json_writer.h"
#include "tools/command/options.h"
#include "tools/device/memory/device_memory.h"
#include "tools/recording/read.h"

/* For commands that show the timeline only. */
#define READING_WITHOUT_HEAP (RECORDING_USAGE | RECORDING_MOMENTS)

/* A recording, and the processes in it that the options select. */
struct reading {
	struct recording *recording;
	struct symbols *symbols;
	struct suppress *suppress; /* owned by the options */
	struct recorded_process **processes;
	size_t n_processes;
	struct recorded_process **unfollowed;
	size_t n_unfollowed;
	struct windows windows; /* of torsh_reading_prepass, where the options have one */
};

/* Read the recording that the options select; ends the program if it cannot be read. */
void torsh_reading_open(struct reading *reading, struct read_options *options);

/*
 * Run the pre-pass over the selected steps and window; ends the program if no steps are left. The
 * reading must outlive the pre-pass.
 */
void torsh_reading_prepass(struct prepass *prepass, struct reading *reading,
			   const struct read_options *options);

/* Free the recording of a reading before its end: only its symbols and their frames stay. */
void torsh_reading_drop(struct reading *reading);

/* Free what torsh_reading_open read, and what the options own. */
void torsh_reading_close(struct reading *reading, struct read_options *options);

/*
 * End the JSON of a report about steps: the members "events" and "recording", those about the
 * selection, and the report's object. Closes the writer.
 */
void torsh_reading_end_json(struct json_writer *json, const struct reading *reading,
			    const struct prepass *prepass);

/* The device memory in the recording, and the pre-pass that it needs. */
struct device_reading {
	struct prepass prepass;
	struct memory_of_devices memory;
};

/* Run the pre-pass and collect device memory; ends the program if the recording cannot be read. */
void torsh_device_reading_open(struct device_reading *devices, const struct reading *reading);

/* Free both. */
void torsh_device_reading_close(struct device_reading *devices);

/* Free how stacks are shown, where few or none will be asked for: their frames take more memory. */
void torsh_reading_end_views(const struct reading *reading);

/*
 * Collect allocation sites, and merge those of equal stacks and, if is_alike, those that
 * torsh_sites_merge_alike merges. Where JSON has a limit, the sites beyond are only counted.
 */
void torsh_options_collect(const struct read_options *options, struct allocation_sites *sites,
			   const struct sites_source *source, bool is_alike,
			   struct symbols *symbols);

/*
 * Sort the allocation sites, name and merge those to print, and put them first. Returns their
 * number, as torsh_options_limit determines it.
 */
size_t torsh_options_choose(const struct read_options *options, struct allocation_sites *sites,
			    struct symbols *symbols, size_t text_limit);

#endif
