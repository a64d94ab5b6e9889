/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/export/html/html_frames.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/frames/frame_kind.h"
#include "tools/symbols/frame_text.h"

void torsh_html_frames_free(struct html_frames *frames)
{
	torsh_key_index_destroy(&frames->by_pointer);
	torsh_hash_map_free(&frames->by_value);
	torsh_intern_free(&frames->texts);
	free(frames->items);
	free(frames->emitted);
}

static uint32_t number_of(struct html_frames *frames, const struct html_frame *frame)
{
	size_t number =
		torsh_hash_map_put(&frames->by_value, frame, sizeof(*frame), frames->n)->value;

	if (number == frames->n) {
		frames->items = torsh_array_reserve(frames->items, frames->n, &frames->n_room,
						    sizeof(*frames->items));
		frames->items[frames->n++] = *frame;
	}
	return (uint32_t)number;
}

static struct html_frame describe(struct html_frames *frames, const struct frame *frame)
{
	struct html_frame made = {.function = frame->function,
				  .file = frame->file,
				  .module = frame->module,
				  .line = frame->line > 0 ? (uint32_t)frame->line : 0};
	char name[256];

	if (frame->cut) {
		made.kind = HTML_FRAME_CUT;
		made.function = torsh_intern(&frames->texts, frame->cut);
		return made;
	}
	made.kind = frame->is_python ? HTML_FRAME_PYTHON : HTML_FRAME_NATIVE;
	if (!made.function)
		made.function =
			torsh_intern(&frames->texts, torsh_frame_name(frame, name, sizeof(name)));
	return made;
}

enum html_frame_category torsh_html_frame_category(const struct frame *frame)
{
	static const enum html_frame_category categories[] = {
		[FRAME_OWN] = HTML_CATEGORY_OWN,
		[FRAME_PACKAGE] = HTML_CATEGORY_LIBRARY,
		[FRAME_STANDARD] = HTML_CATEGORY_LIBRARY,
		[FRAME_LIBRARY] = HTML_CATEGORY_NATIVE,
		[FRAME_IMPORT] = HTML_CATEGORY_IMPORTS,
		[FRAME_INTERPRETER] = HTML_CATEGORY_RUNTIME,
		[FRAME_CXX] = HTML_CATEGORY_RUNTIME,
		[FRAME_C_LIBRARY] = HTML_CATEGORY_RUNTIME,
		[FRAME_AGENT] = HTML_CATEGORY_RUNTIME,
		[FRAME_CUT] = HTML_CATEGORY_LABEL,
	};

	return categories[torsh_frame_kind(frame, torsh_working_directory())];
}

uint32_t torsh_html_frame(struct html_frames *frames, const struct frame *frame)
{
	uint64_t key = (uint64_t)(uintptr_t)frame;
	struct key_slot *slot = torsh_key_index_find(&frames->by_pointer, key);
	struct html_frame made;
	uint32_t number;

	if (slot->key)
		return slot->number;
	made = describe(frames, frame);
	made.category = (uint16_t)torsh_html_frame_category(frame);
	number = made.category == HTML_CATEGORY_IMPORTS ? HTML_FRAME_NUMBER_IMPORT
							: number_of(frames, &made);
	torsh_key_index_fill(&frames->by_pointer, slot, key, number);
	return number;
}

uint32_t torsh_html_frame_text(struct html_frames *frames, enum html_frame_kind kind,
			       const char *text)
{
	struct html_frame made = {.function = torsh_intern(&frames->texts, text),
				  .kind = (uint16_t)kind,
				  .category = kind == HTML_FRAME_IMPORT ? HTML_CATEGORY_IMPORTS
									: HTML_CATEGORY_LABEL};

	return number_of(frames, &made);
}

void torsh_html_frames_create(struct html_frames *frames)
{
	*frames = (struct html_frames){0};
	torsh_key_index_create(&frames->by_pointer);
	torsh_html_frame_text(frames, HTML_FRAME_LABEL, "all");
	torsh_html_frame_text(frames, HTML_FRAME_OTHERS, "others");
	torsh_html_frame_text(frames, HTML_FRAME_IMPORT, "import");
}

void torsh_html_frames_restart(struct html_frames *frames)
{
	free(frames->emitted);
	frames->emitted = torsh_need_items(NULL, 0, frames->n, sizeof(*frames->emitted));
	frames->n_emitted = 0;
}

uint32_t torsh_html_frames_use(struct html_frames *frames, uint32_t frame)
{
	if (!frames->emitted[frame])
		frames->emitted[frame] = (uint32_t)++frames->n_emitted;
	return frames->emitted[frame] - 1;
}

/* Returns the frames of the page in the order of their numbers; the caller frees the array. */
static const struct html_frame **in_order(const struct html_frames *frames)
{
	const struct html_frame **ordered =
		torsh_need_items(NULL, 0, frames->n_emitted, sizeof(*ordered));

	for (size_t i = 0; i < frames->n; i++) {
		if (frames->emitted[i])
			ordered[frames->emitted[i] - 1] = &frames->items[i];
	}
	return ordered;
}

void torsh_html_frames_put(struct html_frames *frames, struct html_texts *texts,
			   struct json_writer *json)
{
	const struct html_frame **ordered = in_order(frames);
	size_t n = frames->n_emitted;

	torsh_json_begin_object(json, "frames");
	torsh_json_begin_array(json, "function");
	for (size_t i = 0; i < n; i++)
		torsh_json_put_u64(json, NULL, torsh_html_text(texts, ordered[i]->function));
	torsh_json_end_array(json);
	torsh_json_begin_array(json, "file");
	for (size_t i = 0; i < n; i++)
		torsh_json_put_u64(json, NULL, torsh_html_text(texts, ordered[i]->file));
	torsh_json_end_array(json);
	torsh_json_begin_array(json, "module");
	for (size_t i = 0; i < n; i++)
		torsh_json_put_u64(json, NULL, torsh_html_text(texts, ordered[i]->module));
	torsh_json_end_array(json);
	torsh_json_begin_array(json, "line");
	for (size_t i = 0; i < n; i++)
		torsh_json_put_u64(json, NULL, ordered[i]->line);
	torsh_json_end_array(json);
	torsh_json_begin_array(json, "kind");
	for (size_t i = 0; i < n; i++)
		torsh_json_put_u64(json, NULL, ordered[i]->kind);
	torsh_json_end_array(json);
	torsh_json_begin_array(json, "category");
	for (size_t i = 0; i < n; i++)
		torsh_json_put_u64(json, NULL, ordered[i]->category);
	torsh_json_end_array(json);
	torsh_json_end_object(json);
	free(ordered);
}

/* ---- texts ----------------------------------------------------------------------------------- */

uint32_t torsh_html_text(struct html_texts *texts, const char *text)
{
	const struct hash_entry *entry;

	if (!text)
		return 0;
	entry = torsh_hash_map_put_text(&texts->map, text, texts->n + 1);
	if (entry->value == texts->n + 1) {
		texts->items = torsh_array_reserve(texts->items, texts->n, &texts->n_room,
						   sizeof(*texts->items));
		texts->items[texts->n++] = entry->key;
	}
	return (uint32_t)entry->value;
}

/* Returns the length of a text cut to at most n bytes, at the end of a character. */
static size_t cut_at(const char *text, size_t n)
{
	while (n && ((unsigned char)text[n] & 0xc0) == 0x80)
		n--;
	return n;
}

static void put_text(const struct html_texts *texts, struct json_writer *json, const char *text)
{
	if (strnlen(text, texts->n_max + 1) <= texts->n_max) {
		torsh_json_put_text(json, NULL, text);
		return;
	}
	torsh_json_begin_text(json, NULL);
	torsh_json_add_text_n(json, text, cut_at(text, texts->n_max));
	torsh_json_add_text(json, "\u2026");
	torsh_json_end_text(json);
}

void torsh_html_texts_put(const struct html_texts *texts, struct json_writer *json)
{
	torsh_json_begin_array(json, "texts");
	torsh_json_put_null(json, NULL);
	for (size_t i = 0; i < texts->n; i++)
		put_text(texts, json, texts->items[i]);
	torsh_json_end_array(json);
}

void torsh_html_texts_free(struct html_texts *texts)
{
	torsh_hash_map_free(&texts->map);
	free(texts->items);
	*texts = (struct html_texts){0};
}
