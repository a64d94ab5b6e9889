/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Samples of the processor as packets of Perfetto's own sampler, each stack and each frame defined
 * once. A frame of native code is in the mapping of its library, at its offset there; a line of
 * Python in the mapping of its file, at its number.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/hash_map.h"
#include "tools/base/containers/sparse_array.h"
#include "tools/base/die.h"
#include "tools/export/perfetto/perfetto.h"
#include "tools/export/sampled_stacks.h"
#include "tools/symbols/frame_text.h"

#define CPU_MODE_USER 2
#define NO_FILE "[no file]"

/* Frames and stacks have the numbers of the tree's frames and nodes; texts count for each use. */
struct perfetto_samples {
	struct sampled_stacks stacks;
	struct hash_map functions, files, sources;
	size_t n_frames; /* that are defined */
	struct sparse_array is_defined; /* bool by node */
	uint64_t *path; /* of a stack, being defined */
	size_t path_room;
	uint64_t cpu_ns;
};

static struct perfetto_samples *samples_of(struct perfetto *perfetto, struct sequence *sequence)
{
	if (!sequence->samples) {
		sequence->samples = torsh_need(calloc(1, sizeof(*sequence->samples)));
		torsh_sampled_stacks_create(&sequence->samples->stacks, perfetto->trace->symbols);
		torsh_sparse_array_create(&sequence->samples->is_defined, sizeof(bool));
	}
	return sequence->samples;
}

void torsh_perfetto_samples_free(struct perfetto_samples *samples)
{
	if (!samples)
		return;
	torsh_sampled_stacks_free(&samples->stacks);
	torsh_hash_map_free(&samples->functions);
	torsh_hash_map_free(&samples->files);
	torsh_hash_map_free(&samples->sources);
	torsh_sparse_array_destroy(&samples->is_defined);
	free(samples->path);
	free(samples);
}

/* Returns the number of a text among those of a map, from 1; *is_new: it has to be defined. */
static uint64_t number_text(struct hash_map *texts, const char *text, bool *is_new)
{
	size_t n = texts->n;
	uint64_t number = torsh_hash_map_put_text(texts, text, n + 1)->value;

	*is_new = number == n + 1;
	return number;
}

/* A frame's definition, with the texts and the mapping that are new with it. */
struct definition {
	Perfetto__InternedData data;
	Perfetto__InternedString function, file, source, *functions, *files, *sources;
	Perfetto__Mapping mapping, *mappings;
	Perfetto__Frame frame, *frames;
};

static void define_text(Perfetto__InternedString *entry, uint64_t number, const char *text)
{
	perfetto__interned_string__init(entry);
	entry->has_iid = 1;
	entry->iid = number;
	entry->name = (char *)(uintptr_t)text;
}

static uint64_t define_function(struct perfetto_samples *samples, struct definition *definition,
				const char *name)
{
	bool is_new;
	uint64_t number = number_text(&samples->functions, name, &is_new);

	define_text(&definition->function, number, name);
	definition->functions = &definition->function;
	definition->data.n_function_names = is_new;
	definition->data.function_names = &definition->functions;
	return number;
}

/* A path has one part: readers put a "/" before it. */
static uint64_t define_mapping(struct perfetto_samples *samples, struct definition *definition,
			       const char *path)
{
	bool is_new;
	uint64_t number = number_text(&samples->files, path, &is_new);

	define_text(&definition->file, number, path + (*path == '/'));
	definition->files = &definition->file;
	perfetto__mapping__init(&definition->mapping);
	definition->mapping.has_iid = 1;
	definition->mapping.iid = number;
	definition->mapping.n_path_string_ids = 1;
	definition->mapping.path_string_ids = &definition->file.iid;
	definition->mappings = &definition->mapping;
	definition->data.n_mapping_paths = definition->data.n_mappings = is_new;
	definition->data.mapping_paths = &definition->files;
	definition->data.mappings = &definition->mappings;
	return number;
}

static uint64_t define_source(struct perfetto_samples *samples, struct definition *definition,
			      const char *path)
{
	bool is_new;
	uint64_t number = number_text(&samples->sources, path, &is_new);

	define_text(&definition->source, number, path);
	definition->sources = &definition->source;
	definition->data.n_source_paths = is_new;
	definition->data.source_paths = &definition->sources;
	return number;
}

static void define_frame(struct perfetto *perfetto, const struct sequence *sequence, uint32_t iid)
{
	struct perfetto_samples *samples = sequence->samples;
	const struct frame *frame = torsh_sampled_frame(&samples->stacks, iid);
	struct definition definition;
	Perfetto__Frame *out = &definition.frame;
	const char *path = frame->is_python ? frame->file : frame->module;
	char name[256];

	perfetto__interned_data__init(&definition.data);
	perfetto__frame__init(out);
	out->has_iid = out->has_function_name_id = out->has_mapping_id = out->has_rel_pc = 1;
	out->iid = iid;
	out->function_name_id =
		define_function(samples, &definition, torsh_frame_name(frame, name, sizeof(name)));
	out->mapping_id = define_mapping(samples, &definition, path && *path ? path : NO_FILE);
	out->rel_pc = frame->is_python ? (uint64_t)frame->line
		      : frame->module  ? frame->module_offset
				       : frame->address;
	if (frame->file) {
		out->has_source_path_iid = 1;
		out->source_path_iid = define_source(samples, &definition, frame->file);
		out->has_line_number = frame->line > 0;
		out->line_number = (uint32_t)frame->line;
	}
	definition.frames = out;
	definition.data.n_frames = 1;
	definition.data.frames = &definition.frames;
	torsh_perfetto_put_interned(perfetto->output, sequence, &definition.data);
}

static void define_stack(struct perfetto *perfetto, const struct sequence *sequence, uint32_t node)
{
	struct perfetto_samples *samples = sequence->samples;
	Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
	Perfetto__Callstack stack = PERFETTO__CALLSTACK__INIT, *stacks = &stack;
	size_t n = 0;

	for (uint32_t at = node; at; at = torsh_sampled_node(&samples->stacks, at)->parent)
		n++;
	if (n > samples->path_room) {
		samples->path = torsh_need_items(samples->path, samples->path_room, n,
						 sizeof(*samples->path));
		samples->path_room = n;
	}
	stack.has_iid = 1;
	stack.iid = node;
	stack.n_frame_ids = n;
	stack.frame_ids = samples->path;
	for (uint32_t at = node; at; at = torsh_sampled_node(&samples->stacks, at)->parent)
		samples->path[--n] = torsh_sampled_node(&samples->stacks, at)->frame;
	data.n_callstacks = 1;
	data.callstacks = &stacks;
	torsh_perfetto_put_interned(perfetto->output, sequence, &data);
}

/* Returns the number of the sample's stack, defined before its first use; 0: it has none. */
static uint32_t stack_of(struct perfetto *perfetto, const struct sequence *sequence, uint32_t stack)
{
	struct perfetto_samples *samples = sequence->samples;
	uint32_t node = torsh_sampled_stack(&samples->stacks, sequence->process, stack);
	bool *is_defined = torsh_sparse_array_at(&samples->is_defined, node);

	while (samples->n_frames < samples->stacks.n_frames)
		define_frame(perfetto, sequence, (uint32_t)++samples->n_frames);
	if (node && !*is_defined)
		define_stack(perfetto, sequence, node);
	*is_defined = true;
	return node;
}

void torsh_perfetto_put_cpu_sample(struct perfetto *perfetto, struct sequence *sequence,
				   const struct timeline_event *event)
{
	struct perfetto_samples *samples = samples_of(perfetto, sequence);
	uint32_t stack = stack_of(perfetto, sequence, event->stack);
	struct event_bytes bytes = {.at = bytes.bytes};

	samples->cpu_ns += event->event.cpu_sample.cpu_ns;
	perfetto_field(&bytes, SAMPLE_PID, sequence->process->pid);
	perfetto_field(&bytes, SAMPLE_TID, torsh_trace_tid(sequence->process, event->thread));
	if (stack)
		perfetto_field(&bytes, SAMPLE_CALLSTACK, stack);
	perfetto_field(&bytes, SAMPLE_CPU_MODE, CPU_MODE_USER);
	perfetto_field(&bytes, SAMPLE_TIMEBASE, samples->cpu_ns);
	torsh_perfetto_sample_packet(perfetto, sequence, &bytes, event->at_ns);
}
