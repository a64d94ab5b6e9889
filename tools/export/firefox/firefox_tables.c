/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The tables of a profile for the Firefox Profiler that all its threads share. */
#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/export/firefox/firefox.h"
#include "tools/frames/frame_kind.h"
#include "tools/symbols/frame_text.h"

#define RESOURCE_LIBRARY 1

/* Texts are numbers from 1; 0: unknown. */
struct function {
	uint32_t name, source, library; /* source, library: number of their tables, from 1 */
};

struct frame_row {
	uint32_t function; /* from 0 */
	enum firefox_category category;
	unsigned depth; /* of inlined functions, the outermost has 0 */
};

struct tables {
	struct firefox *firefox;
	struct frame_row *frames;
	struct function *functions;
	size_t n_functions, functions_room;
	uint32_t *sources, *libraries; /* texts */
	size_t n_sources, sources_room, n_libraries, libraries_room;
	struct hash_map by_function, by_source, by_library;
};

static enum firefox_category category_of(const struct frame *frame)
{
	switch (torsh_frame_kind(frame, torsh_working_directory())) {
	case FRAME_OWN:
		return FIREFOX_PROGRAM;
	case FRAME_PACKAGE:
	case FRAME_STANDARD:
	case FRAME_IMPORT:
		return FIREFOX_PACKAGE;
	case FRAME_LIBRARY:
		return FIREFOX_LIBRARY;
	case FRAME_INTERPRETER:
		return FIREFOX_INTERPRETER;
	case FRAME_CXX:
	case FRAME_C_LIBRARY:
		return FIREFOX_SYSTEM;
	case FRAME_AGENT:
		return FIREFOX_AGENT;
	default:
		return FIREFOX_OTHER;
	}
}

/* Returns the number of a text in a table of them, from 1; 0 for NULL. */
static uint32_t number_in(struct firefox *firefox, struct hash_map *map, uint32_t **texts,
			  size_t *n, size_t *n_room, const char *text)
{
	uint32_t number = torsh_firefox_text(firefox, text);
	size_t found;

	if (!number)
		return 0;
	found = torsh_hash_map_put(map, &number, sizeof(number), *n)->value;
	if (found == *n) {
		*texts = torsh_array_reserve(*texts, *n, n_room, sizeof(**texts));
		(*texts)[(*n)++] = number;
	}
	return (uint32_t)found + 1;
}

static uint32_t function_of(struct tables *tables, const struct frame *frame)
{
	char name[256];
	const struct function function = {
		.name = torsh_firefox_text(tables->firefox,
					   torsh_frame_name(frame, name, sizeof(name))),
		.source = number_in(tables->firefox, &tables->by_source, &tables->sources,
				    &tables->n_sources, &tables->sources_room, frame->file),
		.library = number_in(tables->firefox, &tables->by_library, &tables->libraries,
				     &tables->n_libraries, &tables->libraries_room, frame->module),
	};
	size_t i = torsh_hash_map_put(&tables->by_function, &function, sizeof(function),
				      tables->n_functions)
			   ->value;

	if (i == tables->n_functions) {
		tables->functions = torsh_array_reserve(tables->functions, i,
							&tables->functions_room, sizeof(function));
		tables->functions[tables->n_functions++] = function;
	}
	return (uint32_t)i;
}

static void make_frames(struct tables *tables)
{
	const struct sampled_stacks *stacks = &tables->firefox->stacks;

	tables->frames = torsh_need_items(NULL, 0, stacks->n_frames, sizeof(*tables->frames));
	for (size_t i = 0; i < stacks->n_frames; i++) {
		const struct frame *frame = stacks->frames[i];
		struct frame_row *row = &tables->frames[i];

		row->function = function_of(tables, frame);
		row->category = category_of(frame);
		for (; frame->is_inlined; frame++)
			row->depth++;
	}
}

/* ---- columns --------------------------------------------------------------------------------- */

static void put_nulls(struct json_writer *json, const char *name, size_t n)
{
	torsh_json_begin_array(json, name);
	for (size_t i = 0; i < n; i++)
		torsh_json_put_null(json, NULL);
	torsh_json_end_array(json);
}

static void put_falses(struct json_writer *json, const char *name, size_t n)
{
	torsh_json_begin_array(json, name);
	for (size_t i = 0; i < n; i++)
		torsh_json_put_bool(json, NULL, false);
	torsh_json_end_array(json);
}

static void put_numbers(struct json_writer *json, const char *name, size_t n, uint64_t number)
{
	torsh_json_begin_array(json, name);
	for (size_t i = 0; i < n; i++)
		torsh_json_put_u64(json, NULL, number);
	torsh_json_end_array(json);
}

static void put_stacks(struct json_writer *json, const struct sampled_stacks *stacks)
{
	torsh_json_begin_object(json, "stackTable");
	torsh_json_begin_array(json, "frame");
	for (size_t i = 0; i < stacks->n_nodes; i++)
		torsh_json_put_u64(json, NULL, stacks->nodes[i].frame - 1);
	torsh_json_end_array(json);
	torsh_json_begin_array(json, "prefix");
	for (size_t i = 0; i < stacks->n_nodes; i++)
		torsh_json_put_known(json, NULL, stacks->nodes[i].parent,
				     stacks->nodes[i].parent - 1);
	torsh_json_end_array(json);
	torsh_json_put_u64(json, "length", stacks->n_nodes);
	torsh_json_end_object(json);
}

static void put_frames(struct json_writer *json, const struct tables *tables)
{
	const struct sampled_stacks *stacks = &tables->firefox->stacks;
	size_t n = stacks->n_frames;

	torsh_json_begin_object(json, "frameTable");
	torsh_json_begin_array(json, "address");
	for (size_t i = 0; i < n; i++) {
		if (stacks->frames[i]->module)
			torsh_json_put_u64(json, NULL, stacks->frames[i]->module_offset);
		else
			torsh_json_put_i64(json, NULL, -1);
	}
	torsh_json_end_array(json);
	torsh_json_begin_array(json, "inlineDepth");
	for (size_t i = 0; i < n; i++)
		torsh_json_put_u64(json, NULL, tables->frames[i].depth);
	torsh_json_end_array(json);
	torsh_json_begin_array(json, "category");
	for (size_t i = 0; i < n; i++)
		torsh_json_put_u64(json, NULL, tables->frames[i].category);
	torsh_json_end_array(json);
	put_numbers(json, "subcategory", n, 0);
	torsh_json_begin_array(json, "func");
	for (size_t i = 0; i < n; i++)
		torsh_json_put_u64(json, NULL, tables->frames[i].function);
	torsh_json_end_array(json);
	put_nulls(json, "nativeSymbol", n);
	put_nulls(json, "innerWindowID", n);
	torsh_json_begin_array(json, "line");
	for (size_t i = 0; i < n; i++)
		torsh_json_put_known(json, NULL, stacks->frames[i]->line > 0,
				     (uint64_t)stacks->frames[i]->line);
	torsh_json_end_array(json);
	put_nulls(json, "column", n);
	torsh_json_put_u64(json, "length", n);
	torsh_json_end_object(json);
}

static void put_functions(struct json_writer *json, const struct tables *tables)
{
	size_t n = tables->n_functions;

	torsh_json_begin_object(json, "funcTable");
	torsh_json_begin_array(json, "name");
	for (size_t i = 0; i < n; i++)
		torsh_json_put_u64(json, NULL, tables->functions[i].name - 1);
	torsh_json_end_array(json);
	put_falses(json, "isJS", n);
	put_falses(json, "relevantForJS", n);
	torsh_json_begin_array(json, "resource");
	for (size_t i = 0; i < n; i++)
		torsh_json_put_i64(json, NULL, (int64_t)tables->functions[i].library - 1);
	torsh_json_end_array(json);
	torsh_json_begin_array(json, "source");
	for (size_t i = 0; i < n; i++)
		torsh_json_put_known(json, NULL, tables->functions[i].source,
				     tables->functions[i].source - 1);
	torsh_json_end_array(json);
	put_nulls(json, "lineNumber", n);
	put_nulls(json, "columnNumber", n);
	torsh_json_put_u64(json, "length", n);
	torsh_json_end_object(json);
}

static void put_texts(struct json_writer *json, const char *name, const uint32_t *texts, size_t n)
{
	torsh_json_begin_array(json, name);
	for (size_t i = 0; i < n; i++)
		torsh_json_put_u64(json, NULL, texts[i] - 1);
	torsh_json_end_array(json);
}

/* A resource for each library, with its number; names of resources are paths. */
static void put_resources(struct json_writer *json, const struct tables *tables)
{
	size_t n = tables->n_libraries;

	torsh_json_begin_object(json, "resourceTable");
	torsh_json_begin_array(json, "lib");
	for (size_t i = 0; i < n; i++)
		torsh_json_put_u64(json, NULL, i);
	torsh_json_end_array(json);
	put_texts(json, "name", tables->libraries, n);
	put_nulls(json, "host", n);
	put_numbers(json, "type", n, RESOURCE_LIBRARY);
	torsh_json_put_u64(json, "length", n);
	torsh_json_end_object(json);
	torsh_json_begin_object(json, "sources");
	put_nulls(json, "uuid", tables->n_sources);
	put_texts(json, "filename", tables->sources, tables->n_sources);
	torsh_json_put_u64(json, "length", tables->n_sources);
	torsh_json_end_object(json);
}

/* Frames have names already: the viewer looks for none. */
static void put_no_symbols(struct json_writer *json)
{
	static const char *const columns[] = {"libIndex", "address", "name", "functionSize"};

	torsh_json_begin_object(json, "nativeSymbols");
	for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++)
		put_nulls(json, columns[i], 0);
	torsh_json_put_u64(json, "length", 0);
	torsh_json_end_object(json);
}

static void put_libraries(struct json_writer *json, const struct tables *tables)
{
	torsh_json_begin_array(json, "libs");
	for (size_t i = 0; i < tables->n_libraries; i++) {
		const char *path = tables->firefox->strings[tables->libraries[i] - 1],
			   *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

		torsh_json_begin_object(json, NULL);
		/* The recording does not have it, and only a search for symbols needs it. */
		torsh_json_put_text(json, "arch", "");
		torsh_json_put_text(json, "name", name);
		torsh_json_put_text(json, "path", path);
		torsh_json_put_text(json, "debugName", name);
		torsh_json_put_text(json, "debugPath", path);
		torsh_json_put_text(json, "breakpadId", "");
		torsh_json_put_null(json, "codeId");
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

void torsh_firefox_put_tables(struct firefox *firefox)
{
	struct tables tables = {.firefox = firefox};
	struct json_writer *json = &firefox->json;

	make_frames(&tables);
	put_libraries(json, &tables);
	torsh_json_begin_object(json, "shared");
	put_stacks(json, &firefox->stacks);
	put_frames(json, &tables);
	put_functions(json, &tables);
	put_resources(json, &tables);
	put_no_symbols(json);
	torsh_json_begin_array(json, "stringArray");
	for (size_t i = 0; i < firefox->n_strings; i++)
		torsh_json_put_text(json, NULL, firefox->strings[i]);
	torsh_json_end_array(json);
	torsh_json_end_object(json);
	torsh_hash_map_free(&tables.by_function);
	torsh_hash_map_free(&tables.by_source);
	torsh_hash_map_free(&tables.by_library);
	free(tables.frames);
	free(tables.functions);
	free(tables.sources);
	free(tables.libraries);
}
