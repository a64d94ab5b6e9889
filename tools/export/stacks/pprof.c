/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * pprof's profile: gzip over one protobuf message. Locations are addresses of a process, with the
 * functions inlined there; a sample's values are blocks and bytes for each weight. The whole
 * message is built in memory, because protobuf puts its length first.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "agent/wire/channel.h"
#include "pprof.pb-c.h"
#include "tools/base/containers/array.h"
#include "tools/base/containers/hash_map.h"
#include "tools/base/die.h"
#include "tools/export/exporter.h"
#include "tools/symbols/frame_text.h"

/* Numbers already assigned: location ids by address and mapping ids by module, for one process. */
struct numbered_process {
	const struct recorded_process *process;
	uint64_t *locations, *mappings; /* 0: not assigned */
};

struct pprof {
	Pprof__Profile recording;
	size_t samples_room, mappings_room, locations_room, functions_room, texts_room;
	struct hash_map strings, functions; /* numbers by text, and by three strings' numbers */
	struct hash_map merged; /* ids of locations for merged samples, by text */
	struct numbered_process *processes;
	size_t n_processes, processes_room;
};

/* Append a new message, initialised by its type's init, to a repeated field. */
#define ADD_MESSAGE(state, field, room, made)                                                   \
	do {                                                                                    \
		(state)->recording.field = torsh_array_reserve(                                 \
			(state)->recording.field, (state)->recording.n_##field, &(state)->room, \
			sizeof(*(state)->recording.field));                                     \
		(state)->recording.field[(state)->recording.n_##field++] = (made);              \
	} while (0)

static int64_t number_text(struct pprof *state, const char *text)
{
	size_t n = state->recording.n_string_table,
	       number = torsh_hash_map_put_text(&state->strings, text ? text : "", n)->value;

	if (number == n)
		ADD_MESSAGE(state, string_table, texts_room, torsh_need(strdup(text ? text : "")));
	return (int64_t)number;
}

static uint64_t number_function(struct pprof *state, const struct frame *frame)
{
	char name[256];
	const int64_t key[] = {
		number_text(state, torsh_frame_name(frame, name, sizeof(name))),
		number_text(state, frame->linkage_name),
		number_text(state, frame->file),
	};
	uint64_t next = state->recording.n_function + 1,
		 id = torsh_hash_map_put(&state->functions, key, sizeof(key), next)->value;
	Pprof__Function *function;

	if (id < next)
		return id;
	function = torsh_need(malloc(sizeof(*function)));
	pprof__function__init(function);
	function->has_id = function->has_name = function->has_system_name = function->has_filename =
		1;
	function->id = id;
	function->name = key[0];
	function->system_name = key[1];
	function->filename = key[2];
	ADD_MESSAGE(state, function, functions_room, function);
	return id;
}

static int64_t number_build_id(struct pprof *state, const struct recorded_module *module)
{
	char hex[129] = "";

	for (size_t i = 0; i < module->n_build_id && i < 64; i++)
		snprintf(hex + i * 2, 3, "%02x", module->build_id[i]);
	return number_text(state, hex);
}

static uint64_t number_mapping(struct pprof *state, struct numbered_process *numbered,
			       const struct recorded_module *module)
{
	const struct recorded_process *process = numbered->process;
	size_t i = (size_t)(module - process->tables->modules);
	uint64_t shift = i < process->n_shifts ? process->shifts[i] : 0;
	uint64_t *id = &numbered->mappings[i], known = *id;
	Pprof__Mapping *mapping;

	if (known)
		return known;
	mapping = torsh_need(malloc(sizeof(*mapping)));
	pprof__mapping__init(mapping);
	*id = state->recording.n_mapping + 1;
	mapping->has_id = mapping->has_memory_start = mapping->has_memory_limit =
		mapping->has_filename = 1;
	mapping->has_build_id = mapping->has_has_functions = mapping->has_has_filenames = 1;
	mapping->has_has_line_numbers = mapping->has_has_inline_frames = 1;
	mapping->id = *id;
	mapping->memory_start = module->start + shift;
	mapping->memory_limit = module->end + shift;
	mapping->filename = number_text(state, module->path);
	mapping->build_id = number_build_id(state, module);
	/* Otherwise the tool looks for the file itself, which may be another one on its machine. */
	mapping->has_functions = mapping->has_filenames = 1;
	mapping->has_line_numbers = mapping->has_inline_frames = 1;
	ADD_MESSAGE(state, mapping, mappings_room, mapping);
	return *id;
}

static struct numbered_process *number_process(struct pprof *state,
					       const struct recorded_process *process)
{
	struct numbered_process *numbered;

	for (size_t i = state->n_processes; i-- > 0;) {
		if (torsh_recording_has_same_code(state->processes[i].process, process))
			return &state->processes[i];
	}
	state->processes = torsh_array_reserve(state->processes, state->n_processes,
					       &state->processes_room, sizeof(*numbered));
	numbered = &state->processes[state->n_processes++];
	*numbered = (struct numbered_process){
		.process = process,
		.locations = torsh_need_items(NULL, 0, process->tables->n_addresses + 1,
					      sizeof(uint64_t)),
		.mappings = torsh_need_items(NULL, 0, process->tables->n_modules, sizeof(uint64_t)),
	};
	/* The tool treats the first mapping as the program's. */
	for (size_t i = 0; i < process->tables->n_modules; i++) {
		const char *path = process->tables->modules[i].path;

		if (path && process->program && strcmp(path, process->program) == 0)
			number_mapping(state, numbered, &process->tables->modules[i]);
	}
	return numbered;
}

static void add_lines(struct pprof *state, Pprof__Location *location, const struct frames *frames)
{
	location->line = torsh_need_items(NULL, 0, frames->n, sizeof(*location->line));
	for (size_t i = 0; i < frames->n; i++) {
		Pprof__Line *line = torsh_need(malloc(sizeof(*line)));

		pprof__line__init(line);
		line->has_function_id = 1;
		line->function_id = number_function(state, &frames->frames[i]);
		line->has_line = frames->frames[i].line != 0;
		line->line = frames->frames[i].line;
		location->line[location->n_line++] = line;
	}
}

static uint64_t number_location(struct export *export, struct numbered_process *numbered,
				uint32_t address)
{
	struct pprof *state = export->state;
	const struct recorded_process *process = numbered->process;
	const struct recorded_module *module = torsh_recording_module(process, address);
	const struct frames *frames = torsh_symbols_frames(export->symbols, process, address);
	Pprof__Location *location;

	/* All addresses that are missing in the recording share one location. */
	if (address > process->tables->n_addresses)
		address = (uint32_t)process->tables->n_addresses;
	if (numbered->locations[address])
		return numbered->locations[address];
	location = torsh_need(malloc(sizeof(*location)));
	pprof__location__init(location);
	location->has_id = location->has_address = 1;
	location->id = state->recording.n_location + 1;
	/* The call's address, because the return address may belong to the next line. */
	location->address = frames->frames[0].address -
			    (frames->frames[0].address && !frames->frames[0].is_exact);
	if (module) {
		location->has_mapping_id = 1;
		location->mapping_id = number_mapping(state, numbered, module);
	}
	add_lines(state, location, frames);
	ADD_MESSAGE(state, location, locations_room, location);
	return numbered->locations[address] = location->id;
}

/* Returns a location without an address, with the text as its function. */
static uint64_t number_merged(struct pprof *state, const char *text)
{
	const struct frame frame = {.function = text};
	uint64_t next = state->recording.n_location + 1,
		 id = torsh_hash_map_put_text(&state->merged, text, next)->value;
	Pprof__Location *location;

	if (id < next)
		return id;
	location = torsh_need(malloc(sizeof(*location)));
	pprof__location__init(location);
	location->has_id = 1;
	location->id = id;
	add_lines(state, location, &(struct frames){.frames = (struct frame *)&frame, .n = 1});
	ADD_MESSAGE(state, location, locations_room, location);
	return id;
}

static void add_type(struct pprof *state, size_t i, const char *weight, const char *of,
		     const char *unit)
{
	Pprof__ValueType *type = torsh_need(malloc(sizeof(*type)));
	char name[64];

	snprintf(name, sizeof(name), "%s%s%s", weight, of ? "_" : "", of ? of : "");
	pprof__value_type__init(type);
	type->has_type = type->has_unit = 1;
	type->type = number_text(state, name);
	type->unit = number_text(state, unit);
	state->recording.sample_type[i] = type;
}

/* The two types of a weight; those of processor time are called as pprof's own. */
static void add_types(struct pprof *state, enum export_weight weight)
{
	Pprof__Profile *recording = &state->recording;
	bool is_cpu = weight == EXPORT_CPU;
	const char *name = torsh_export_weight_names[weight];

	add_type(state, recording->n_sample_type++, is_cpu ? "samples" : name,
		 is_cpu ? NULL : "objects", "count");
	add_type(state, recording->n_sample_type++, name, is_cpu ? NULL : "space",
		 torsh_export_unit(weight));
}

static void begin_pprof(struct export *export)
{
	struct pprof *state = torsh_need(calloc(1, sizeof(*state)));
	Pprof__Profile *recording = &state->recording;

	export->state = state;
	pprof__profile__init(recording);
	number_text(state, "");
	recording->sample_type =
		torsh_need_items(NULL, 0, 2 * N_EXPORT_WEIGHTS, sizeof(*recording->sample_type));
	for (unsigned i = 0; i < N_EXPORT_WEIGHTS; i++) {
		if (torsh_export_has(export, i))
			add_types(state, i);
	}
	recording->has_time_nanos = recording->has_duration_nanos =
		recording->has_default_sample_type = 1;
	recording->time_nanos = (int64_t) export->recording->start_realtime_ns;
	recording->duration_nanos = (int64_t) export->recording->end_ns;
	recording->default_sample_type = recording->sample_type[1]->type;
}

static void label_process(struct pprof *state, Pprof__Sample *sample,
			  const struct recorded_process *process)
{
	Pprof__Label *pid = torsh_need(malloc(sizeof(*pid))),
		     *program = torsh_need(malloc(sizeof(*program)));

	pprof__label__init(pid);
	pid->has_key = pid->has_num = 1;
	pid->key = number_text(state, "pid");
	pid->num = process->pid;
	pprof__label__init(program);
	program->has_key = program->has_str = 1;
	program->key = number_text(state, "program");
	program->str = number_text(state, torsh_recording_program_name(process));
	sample->label = torsh_need_items(NULL, 0, 2, sizeof(*sample->label));
	sample->label[sample->n_label++] = pid;
	sample->label[sample->n_label++] = program;
}

static void sample_pprof(struct export *export, const struct export_sample *sample)
{
	struct pprof *state = export->state;
	struct numbered_process *numbered = number_process(state, sample->process);
	Pprof__Sample *made = torsh_need(malloc(sizeof(*made)));

	pprof__sample__init(made);
	made->location_id =
		torsh_need_items(NULL, 0, sample->n_addresses + 1, sizeof(*made->location_id));
	if (sample->merged)
		made->location_id[made->n_location_id++] = number_merged(state, sample->merged);
	for (size_t i = 0; i < sample->n_addresses; i++)
		made->location_id[made->n_location_id++] =
			number_location(export, numbered, sample->addresses[i]);
	made->value = torsh_need_items(NULL, 0, 2 * N_EXPORT_WEIGHTS, sizeof(*made->value));
	for (unsigned i = 0; i < N_EXPORT_WEIGHTS; i++) {
		if (!torsh_export_has(export, i))
			continue;
		made->value[made->n_value++] = (int64_t)sample->values[i].blocks;
		made->value[made->n_value++] = (int64_t)sample->values[i].bytes;
	}
	label_process(state, made, sample->process);
	ADD_MESSAGE(state, sample, samples_room, made);
}

/* Compress the packed message. */
static int write_gzip(FILE *file, const uint8_t *bytes, size_t n_bytes)
{
	z_stream stream = {.next_in = (Bytef *)bytes};
	uint8_t out[65536];
	int rc;

	if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	do {
		size_t n = n_bytes < (1u << 30) ? n_bytes : 1u << 30;

		if (!stream.avail_in) {
			stream.avail_in = (uInt)n;
			n_bytes -= n;
		}
		stream.next_out = out;
		stream.avail_out = sizeof(out);
		rc = deflate(&stream, n_bytes ? Z_NO_FLUSH : Z_FINISH);
		if (fwrite(out, 1, sizeof(out) - stream.avail_out, file) !=
		    sizeof(out) - stream.avail_out) {
			deflateEnd(&stream);
			return -errno;
		}
	} while (rc == Z_OK || rc == Z_BUF_ERROR);
	deflateEnd(&stream);
	return rc == Z_STREAM_END ? 0 : -EIO;
}

static void free_pprof(struct pprof *state)
{
	for (size_t i = 0; i < state->n_processes; i++) {
		free(state->processes[i].locations);
		free(state->processes[i].mappings);
	}
	free(state->processes);
	torsh_hash_map_free(&state->functions);
	torsh_hash_map_free(&state->strings);
	torsh_hash_map_free(&state->merged);
	/* protobuf-c frees each field: the messages, the arrays and the strings. */
	for (size_t i = 0; i < state->recording.n_sample; i++)
		pprof__sample__free_unpacked(state->recording.sample[i], NULL);
	for (size_t i = 0; i < state->recording.n_mapping; i++)
		pprof__mapping__free_unpacked(state->recording.mapping[i], NULL);
	for (size_t i = 0; i < state->recording.n_location; i++)
		pprof__location__free_unpacked(state->recording.location[i], NULL);
	for (size_t i = 0; i < state->recording.n_function; i++)
		pprof__function__free_unpacked(state->recording.function[i], NULL);
	for (size_t i = 0; i < state->recording.n_sample_type; i++)
		pprof__value_type__free_unpacked(state->recording.sample_type[i], NULL);
	for (size_t i = 0; i < state->recording.n_string_table; i++)
		free(state->recording.string_table[i]);
	free(state->recording.sample);
	free(state->recording.mapping);
	free(state->recording.location);
	free(state->recording.function);
	free(state->recording.sample_type);
	free(state->recording.string_table);
	free(state);
}

static int end_pprof(struct export *export)
{
	struct pprof *state = export->state;
	size_t n_bytes = pprof__profile__get_packed_size(&state->recording);
	uint8_t *bytes = torsh_need_items(NULL, 0, n_bytes, 1);
	int rc;

	pprof__profile__pack(&state->recording, bytes);
	rc = write_gzip(export->file, bytes, n_bytes);
	free(bytes);
	free_pprof(state);
	return rc;
}

const struct exporter torsh_export_pprof = {
	.name = "pprof",
	.default_what = EXPORT_ALL,
	.is_binary = true,
	.begin = begin_pprof,
	.sample = sample_pprof,
	.end = end_pprof,
};
