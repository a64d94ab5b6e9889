/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ranks/make/call_paths.h"

#include <stdio.h>
#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

void torsh_call_paths_start(struct call_paths *paths, struct fold *fold,
			    struct recorded_process *process, struct symbols *symbols)
{
	*paths = (struct call_paths){.fold = fold, .process = process, .symbols = symbols};
	torsh_key_index_create(&paths->of_stacks);
	torsh_key_index_create(&paths->of_spans);
}

void torsh_call_paths_end(struct call_paths *paths)
{
	torsh_key_index_destroy(&paths->of_stacks);
	torsh_key_index_destroy(&paths->of_spans);
	torsh_hash_map_free(&paths->build_ids);
	for (size_t i = 0; i < paths->n_ids; i++)
		free(paths->ids[i]);
	free(paths->ids);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static char *hex_of(const uint8_t *bytes, size_t n)
{
	char *text = torsh_need(calloc(n + 1, 2));

	for (size_t i = 0; i < n; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	return text;
}

/* Returns the build-id of the module at a path, "" if it has none. */
static const char *find_build_id(struct call_paths *paths, const char *path)
{
	const struct recorded_tables *tables = paths->process->tables;
	const struct hash_entry *entry =
		torsh_hash_map_put_text(&paths->build_ids, path, paths->n_ids);
	char *id = NULL;

	if (entry->value < paths->n_ids)
		return paths->ids[entry->value];
	for (size_t i = 0; i < tables->n_modules && !id; i++) {
		const struct recorded_module *module = &tables->modules[i];

		if (module->path && strcmp(module->path, path) == 0)
			id = hex_of(module->build_id, module->n_build_id);
	}
	paths->ids =
		torsh_array_reserve(paths->ids, paths->n_ids, &paths->ids_room, sizeof(char *));
	paths->ids[paths->n_ids++] = id ? id : torsh_need(strdup(""));
	return paths->ids[entry->value];
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static uint32_t put_frame(struct call_paths *paths, uint32_t parent, const struct frame *frame)
{
	struct fold_key key = {.kind = FOLD_FUNCTION,
			       .function = frame->function ? frame->function : "?",
			       .file = frame->file};

	if (!frame->is_python) {
		key.file = frame->module ? base_name(frame->module) : NULL;
		key.build_id = frame->module ? find_build_id(paths, frame->module) : NULL;
	}
	return torsh_fold_node(paths->fold, parent, &key);
}

uint32_t torsh_call_path_frames(struct call_paths *paths, const struct frame *const *frames,
				size_t n, bool only_python)
{
	bool has_python = false;
	uint32_t node = 0;

	for (size_t i = 0; i < n && only_python; i++)
		has_python |= frames[i]->is_python;
	for (size_t i = n; i-- > 0;) {
		if (!frames[i]->cut && (!has_python || frames[i]->is_python))
			node = put_frame(paths, node, frames[i]);
	}
	return node;
}

/* ---- spans ----------------------------------------------------------------------------------- */

static uint32_t find_stack(struct call_paths *paths, uint32_t stack)
{
	struct key_slot *slot = torsh_key_index_find(&paths->of_stacks, stack + UINT64_C(1));
	const struct frame **frames;
	uint32_t node;
	size_t n;

	if (slot->key)
		return slot->number;
	frames = torsh_stack_frames(paths->process, stack, paths->symbols, STACK_VIEW_MERGED, &n);
	node = torsh_call_path_frames(paths, frames, n, true);
	free(frames);
	torsh_key_index_fill(&paths->of_stacks, slot, stack + UINT64_C(1), node);
	return node;
}

uint32_t torsh_call_path_span(struct call_paths *paths, const struct span *span, uint32_t outer)
{
	uint32_t parent = outer || !span->stack ? outer : find_stack(paths, span->stack), node;
	bool is_range = span->kind == SPAN_RANGE;
	uint64_t key = ((uint64_t)parent << 33 | (uint64_t)is_range << 32 | span->name) + 1;
	struct key_slot *slot = torsh_key_index_find(&paths->of_spans, key);

	if (slot->key)
		return slot->number;
	node = torsh_fold_node(paths->fold, parent,
			       &(struct fold_key){.kind = is_range ? FOLD_RANGE : FOLD_OPERATOR,
						  .function = torsh_span_name(span)});
	torsh_key_index_fill(&paths->of_spans, slot, key, node);
	return node;
}
