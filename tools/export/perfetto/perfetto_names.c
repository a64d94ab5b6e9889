/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Names that a trace for Perfetto defines once and then refers to by number. */
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/export/perfetto/perfetto.h"
#include "tools/symbols/frame_text.h"

void torsh_perfetto_put_interned(struct output_stream *output, const struct sequence *sequence,
				 Perfetto__InternedData *data)
{
	Perfetto__TracePacket packet = torsh_perfetto_make_packet(sequence);

	packet.has_sequence_flags = 1;
	packet.sequence_flags = STATE_NEEDED;
	packet.interned_data = data;
	torsh_perfetto_packet(output, &packet);
}

void torsh_perfetto_put_names(struct perfetto *perfetto, const struct sequence *sequence)
{
	static const char *const categories[] = {
#define CATEGORY(NAME, text) text,
		CATEGORIES
#undef CATEGORY
	};
	static const char *const annotations[] = {
#define ANNOTATION(NAME, text) text,
		ANNOTATIONS
#undef ANNOTATION
	};
	Perfetto__InternedString entries[CATEGORIES_END + ANNOTATIONS_END],
		*all[CATEGORIES_END + ANNOTATIONS_END];
	Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
	size_t n = CATEGORIES_END - 1, n_all = n + ANNOTATIONS_END - 1;

	for (size_t i = 0; i < n_all; i++) {
		perfetto__interned_string__init(&entries[i]);
		entries[i].has_iid = 1;
		entries[i].iid = i < n ? i + 1 : i - n + 1;
		entries[i].name = (char *)(uintptr_t)(i < n ? categories[i] : annotations[i - n]);
		all[i] = &entries[i];
	}
	data.n_event_categories = n;
	data.event_categories = all;
	data.n_debug_annotation_names = n_all - n;
	data.debug_annotation_names = all + n;
	torsh_perfetto_put_interned(perfetto->output, sequence, &data);
}

static void put_name(struct perfetto *perfetto, const struct sequence *sequence, uint64_t iid,
		     const char *name)
{
	Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
	Perfetto__InternedString entry = PERFETTO__INTERNED_STRING__INIT, *entries = &entry;

	entry.has_iid = 1;
	entry.iid = iid;
	entry.name = torsh_need(strndup(name && *name ? name : "?", LABEL_BYTES_MAX));
	data.n_event_names = 1;
	data.event_names = &entries;
	torsh_perfetto_put_interned(perfetto->output, sequence, &data);
	free(entry.name);
}

uint64_t torsh_perfetto_name(struct perfetto *perfetto, struct sequence *sequence, uint32_t label)
{
	if (label > sequence->process->tables->n_functions)
		label = 0;
	if (!(sequence->named[label] & NAMED_EVENT)) {
		sequence->named[label] |= NAMED_EVENT;
		put_name(perfetto, sequence, (uint64_t)label + 1,
			 torsh_timeline_label(sequence->process, label));
	}
	return (uint64_t)label + 1;
}

/* Numbers of kernels follow those of labels. */
uint64_t torsh_perfetto_kernel(struct perfetto *perfetto, struct sequence *sequence, uint32_t label)
{
	struct symbols *symbols = perfetto->trace->symbols;
	const char *name;
	uint64_t iid;

	if (label > sequence->process->tables->n_functions)
		label = 0;
	iid = sequence->process->tables->n_functions + 2 + (uint64_t)label;
	if (!(sequence->named[label] & NAMED_KERNEL)) {
		sequence->named[label] |= NAMED_KERNEL;
		name = torsh_timeline_label(sequence->process, label);
		put_name(perfetto, sequence, iid,
			 name && symbols ? torsh_symbols_demangle(symbols, name) : name);
	}
	return iid;
}

static void put_text(struct perfetto *perfetto, const struct sequence *sequence, uint64_t iid,
		     const char *text)
{
	Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
	Perfetto__InternedBytes entry = PERFETTO__INTERNED_BYTES__INIT, *entries = &entry;

	entry.has_iid = entry.has_str = 1;
	entry.iid = iid;
	entry.str.data = (uint8_t *)(uintptr_t)text;
	entry.str.len = strnlen(text, LABEL_BYTES_MAX);
	data.n_debug_annotation_string_values = 1;
	data.debug_annotation_string_values = &entries;
	torsh_perfetto_put_interned(perfetto->output, sequence, &data);
}

uint64_t torsh_perfetto_text(struct perfetto *perfetto, struct sequence *sequence, uint32_t label)
{
	uint64_t iid;

	if (label > sequence->process->tables->n_functions)
		label = 0;
	iid = (uint64_t)label + 1;
	if (!(sequence->named[label] & NAMED_TEXT)) {
		const char *text = torsh_timeline_label(sequence->process, label);

		sequence->named[label] |= NAMED_TEXT;
		put_text(perfetto, sequence, iid, text ? text : "");
	}
	return iid;
}

/* Numbers of stacks follow those of labels. */
uint64_t torsh_perfetto_stack(struct perfetto *perfetto, struct sequence *sequence, uint32_t stack)
{
	uint64_t iid = sequence->process->tables->n_functions + 1 + (uint64_t)stack;

	if (!stack || stack >= sequence->n_stacks || !perfetto->trace->symbols)
		return 0;
	if (!sequence->named_stacks[stack]) {
		char *text = torsh_stack_text(sequence->process, stack, perfetto->trace->symbols);

		sequence->named_stacks[stack] = true;
		put_text(perfetto, sequence, iid, text);
		free(text);
	}
	return iid;
}

uint64_t torsh_perfetto_made(struct sequence *sequence, uint64_t key, bool *is_new)
{
	struct key_slot *slot = torsh_key_index_find(&sequence->strings, key);
	uint32_t number = slot->key ? slot->number : sequence->strings.n_keys;

	*is_new = !slot->key;
	if (*is_new)
		torsh_key_index_fill(&sequence->strings, slot, key, number);
	return number;
}

/* Follow those of kernels. */
uint64_t torsh_perfetto_made_name(struct perfetto *perfetto, const struct sequence *sequence,
				  uint64_t number, const char *text)
{
	uint64_t iid = 2 * (sequence->process->tables->n_functions + UINT64_C(2)) + number;

	if (text)
		put_name(perfetto, sequence, iid, text);
	return iid;
}

/* Follow those of stacks. */
uint64_t torsh_perfetto_made_text(struct perfetto *perfetto, const struct sequence *sequence,
				  uint64_t number, const char *text)
{
	uint64_t iid = sequence->process->tables->n_functions + 1 + sequence->n_stacks + 1 + number;

	if (text)
		put_text(perfetto, sequence, iid, text);
	return iid;
}
