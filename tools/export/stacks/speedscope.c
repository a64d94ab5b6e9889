/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * speedscope's file format (https://www.speedscope.app/file-format-schema.json): frames shared by
 * all, and a sampled profile for each weight, in bytes or nanoseconds. Samples are held as numbers,
 * and written without a tree of JSON values: a large program has millions of frames.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/containers/hash_map.h"
#include "tools/base/containers/intern.h"
#include "tools/base/die.h"
#include "tools/base/json_writer.h"
#include "tools/export/exporter.h"
#include "tools/symbols/frame_text.h"

/* A frame as it is shown. */
struct seen_frame {
	const char *name, *file;
	int line;
};

struct kept_sample {
	size_t first; /* index into numbers */
	uint32_t n;
	uint64_t bytes[N_EXPORT_WEIGHTS];
};

struct speedscope {
	struct intern texts; /* names and files */
	struct hash_map by_text; /* numbers by a frame's interned texts and line */
	struct hash_map known; /* numbers by struct frame's address, which is faster */
	struct seen_frame *seen; /* by number */
	size_t n_seen, seen_room;
	struct kept_sample *samples;
	size_t n_samples, samples_room;
	uint32_t *numbers;
	size_t n_numbers, numbers_room;
	const struct frame **frames;
	size_t frames_room;
};

static void begin_speedscope(struct export *export)
{
	export->state = torsh_need(calloc(1, sizeof(struct speedscope)));
}

static uint32_t number_frame(struct speedscope *state, const char *name, const char *file, int line)
{
	const struct {
		uint64_t name, file, line;
	} key = {
		.name = (uintptr_t)torsh_intern(&state->texts, name),
		.file = (uintptr_t)torsh_intern(&state->texts, file ? file : ""),
		.line = (uint64_t)line,
	};
	size_t number =
		torsh_hash_map_put(&state->by_text, &key, sizeof(key), state->n_seen)->value;

	if (number < state->n_seen)
		return (uint32_t)number;
	state->seen =
		torsh_array_reserve(state->seen, number, &state->seen_room, sizeof(*state->seen));
	state->seen[state->n_seen++] =
		(struct seen_frame){.name = (const char *)key.name, .file = file, .line = line};
	return (uint32_t)number;
}

static uint32_t number_of(struct speedscope *state, const struct frame *frame)
{
	const struct hash_entry *entry = torsh_hash_map_find(&state->known, &frame, sizeof(frame));
	char name[256];

	if (!entry)
		entry = torsh_hash_map_put(&state->known, &frame, sizeof(frame),
					   number_frame(state,
							torsh_frame_name(frame, name, sizeof(name)),
							frame->file, frame->line));
	return (uint32_t)entry->value;
}

static void keep_number(struct speedscope *state, struct kept_sample *kept, uint32_t number)
{
	state->numbers = torsh_array_reserve(state->numbers, state->n_numbers, &state->numbers_room,
					     sizeof(*state->numbers));
	state->numbers[state->n_numbers++] = number;
	kept->n++;
}

static void sample_speedscope(struct export *export, const struct export_sample *sample)
{
	struct speedscope *state = export->state;
	size_t n = torsh_export_frames(export, sample, &state->frames, &state->frames_room);
	struct kept_sample kept = {.first = state->n_numbers};
	char name[256];

	for (size_t i = 0; i < N_EXPORT_WEIGHTS; i++)
		kept.bytes[i] = sample->values[i].bytes;
	snprintf(name, sizeof(name), "%s (%" PRIu32 ")",
		 torsh_recording_program_name(sample->process), sample->process->pid);
	keep_number(state, &kept, number_frame(state, name, NULL, 0));
	for (size_t i = 0; i < n; i++)
		keep_number(state, &kept, number_of(state, state->frames[i]));
	if (sample->merged)
		keep_number(state, &kept, number_frame(state, sample->merged, NULL, 0));
	state->samples = torsh_array_reserve(state->samples, state->n_samples, &state->samples_room,
					     sizeof(kept));
	state->samples[state->n_samples++] = kept;
}

static void emit_shared(struct json_writer *json, const struct speedscope *state)
{
	torsh_json_begin_object(json, "shared");
	torsh_json_begin_array(json, "frames");
	for (size_t i = 0; i < state->n_seen; i++) {
		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "name", state->seen[i].name);
		if (state->seen[i].file)
			torsh_json_put_text(json, "file", state->seen[i].file);
		if (state->seen[i].line)
			torsh_json_put_u64(json, "line", (uint64_t)state->seen[i].line);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
	torsh_json_end_object(json);
}

static void emit_sample(struct json_writer *json, const uint32_t *numbers, uint32_t n)
{
	torsh_json_begin_array(json, NULL);
	for (uint32_t i = 0; i < n; i++)
		torsh_json_put_u64(json, NULL, numbers[i]);
	torsh_json_end_array(json);
}

static void emit_profile(struct json_writer *json, const struct speedscope *state,
			 enum export_weight weight)
{
	uint64_t sum = 0;

	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "type", "sampled");
	torsh_json_put_text(json, "name", torsh_export_weight_names[weight]);
	torsh_json_put_text(json, "unit", torsh_export_unit(weight));
	torsh_json_begin_lines(json, "samples");
	for (size_t i = 0; i < state->n_samples; i++) {
		const struct kept_sample *kept = &state->samples[i];

		if (!kept->bytes[weight])
			continue;
		emit_sample(json, state->numbers + kept->first, kept->n);
		sum += kept->bytes[weight];
	}
	torsh_json_end_array(json);
	torsh_json_begin_array(json, "weights");
	for (size_t i = 0; i < state->n_samples; i++) {
		if (state->samples[i].bytes[weight])
			torsh_json_put_u64(json, NULL, state->samples[i].bytes[weight]);
	}
	torsh_json_end_array(json);
	torsh_json_put_u64(json, "startValue", 0);
	torsh_json_put_u64(json, "endValue", sum);
	torsh_json_end_object(json);
}

static void free_speedscope(struct speedscope *state)
{
	torsh_hash_map_free(&state->known);
	torsh_hash_map_free(&state->by_text);
	torsh_intern_free(&state->texts);
	free(state->seen);
	free(state->samples);
	free(state->numbers);
	free(state->frames);
	free(state);
}

static int end_speedscope(struct export *export)
{
	struct speedscope *state = export->state;
	const struct recording *recording = export->recording;
	struct json_writer json;

	torsh_json_open(&json, export->file);
	torsh_json_begin_report(&json);
	torsh_json_put_text(&json, "$schema", "https://www.speedscope.app/file-format-schema.json");
	torsh_json_put_text(&json, "exporter", "torsh");
	torsh_json_put_text(&json, "name",
			    recording->n_processes
				    ? torsh_recording_program_name(recording->processes[0])
				    : NULL);
	torsh_json_put_u64(&json, "activeProfileIndex", 0);
	emit_shared(&json, state);
	torsh_json_begin_lines(&json, "profiles");
	for (unsigned i = 0; i < N_EXPORT_WEIGHTS; i++) {
		if (torsh_export_has(export, i))
			emit_profile(&json, state, i);
	}
	torsh_json_end_array(&json);
	torsh_json_end_object(&json);
	torsh_json_close(&json);
	free_speedscope(state);
	return 0;
}

const struct exporter torsh_export_speedscope = {
	.name = "speedscope",
	.default_what = EXPORT_ALL,
	.begin = begin_speedscope,
	.sample = sample_speedscope,
	.end = end_speedscope,
};
