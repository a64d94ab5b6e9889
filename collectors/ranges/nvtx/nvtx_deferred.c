/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Deferred events, read as their schema describes them. Only what is read is remembered of one:
 * where the times, the message, the category and the color are.
 */
#include "collectors/ranges/nvtx/nvtx_deferred.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "agent/producer/key_map.h"
#include "collectors/ranges/nvtx_events.h"
#include "shim/ranges/ranges.h"

#define N_LAYOUTS 16u
#define OFFSET_MAX 4096u

enum part { PART_BEGIN, PART_END, PART_MESSAGE, PART_CATEGORY, PART_COLOR, N_PARTS };

static struct layout {
	uint64_t clock; /* a time domain; 0: that of the batch */
	uint32_t name, bytes;
	uint16_t offsets[N_PARTS]; /* + 1; 0: it has none */
	bool is_registered; /* the message: a handle, not a pointer */
	bool is_mark;
} layouts[N_LAYOUTS];

static struct key_map known; /* domain and schema -> index of a layout + 1 */
static _Atomic uint32_t n_layouts;

/* Bytes of an entry of this type, which is its alignment, too; 0: not known. */
static size_t size_of(uint64_t type)
{
	static const uint8_t sizes[] = {
		0, 1, 1, 2, 2, 4, 4, 8, 8, 8, 8, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 16, 8, 8, 4, 1, 2, 4,
	};

	if (type < sizeof(sizes))
		return sizes[type];
	return type == NVTX_ENTRY_CATEGORY || type == NVTX_ENTRY_COLOR || type == 71 || type == 73
		       ? 4
	       : type == 32				     ? 1
	       : type >= 70 && type <= NVTX_ENTRY_REGISTERED ? 8
							     : 0;
}

static bool is_text(uint64_t type)
{
	return type == NVTX_ENTRY_CSTRING || type == NVTX_ENTRY_CSTRING_UTF8 ||
	       type == NVTX_ENTRY_REGISTERED;
}

static enum part part_of(const struct nvtx_schema_entry *entry, const struct layout *layout)
{
	if (entry->flags & NVTX_ENTRY_IS_ARRAY)
		return N_PARTS;
	if (entry->flags & NVTX_ENTRY_IS_TIMESTAMP && size_of(entry->type) == 8)
		return layout->offsets[PART_BEGIN] || entry->flags & NVTX_ENTRY_IS_RANGE_END
			       ? PART_END
			       : PART_BEGIN;
	/* A length makes it a text within the payload. */
	if (entry->flags & NVTX_ENTRY_IS_MESSAGE && is_text(entry->type) && !entry->detail)
		return PART_MESSAGE;
	return entry->type == NVTX_ENTRY_CATEGORY ? PART_CATEGORY
	       : entry->type == NVTX_ENTRY_COLOR  ? PART_COLOR
						  : N_PARTS;
}

static uint64_t clock_of(const struct nvtx_schema_entry *entry)
{
	for (const struct nvtx_semantics *semantics = entry->semantics; semantics;
	     semantics = semantics->next)
		if (semantics->id == NVTX_SEMANTICS_TIME &&
		    semantics->struct_size >= sizeof(*semantics))
			return semantics->time_domain;
	return 0;
}

/* Bytes that the entry takes; 0: not known. */
static size_t bytes_of(const struct nvtx_schema_entry *entry)
{
	bool is_embedded = entry->detail && !(entry->flags & NVTX_ENTRY_IS_POINTER);

	if (is_text(entry->type) && is_embedded && entry->type != NVTX_ENTRY_REGISTERED)
		return entry->detail;
	if (entry->flags & NVTX_ENTRY_IS_POINTER)
		return sizeof(void *);
	if (entry->flags & NVTX_ENTRY_IS_ARRAY)
		return (entry->flags & NVTX_ENTRY_IS_ARRAY) == NVTX_ENTRY_IS_FIXED_ARRAY
			       ? entry->detail * size_of(entry->type)
			       : 0;
	return size_of(entry->type);
}

/* Offsets that the program left out follow from those before. Returns whether there are times. */
static bool fill(struct layout *layout, const struct nvtx_schema *schema)
{
	size_t end = 0, end_max = 0, alignment_max = 1; /* entries may be in any order */
	size_t packed = schema->fields & NVTX_SCHEMA_HAS_ALIGNMENT ? schema->alignment : 0;

	for (size_t i = 0; i < schema->n_entries; i++) {
		const struct nvtx_schema_entry *entry = &schema->entries[i];
		size_t bytes = bytes_of(entry), alignment = size_of(entry->type);
		enum part part = part_of(entry, layout);

		alignment = bytes == entry->detail && bytes ? 1 : alignment ? alignment : 1;
		alignment = packed && packed < alignment ? packed : alignment;
		alignment_max = alignment > alignment_max ? alignment : alignment_max;
		end = entry->offset ? entry->offset : (end + alignment - 1) / alignment * alignment;
		if (!bytes || end > OFFSET_MAX || bytes > OFFSET_MAX)
			return false;
		if (part < N_PARTS && !layout->offsets[part])
			layout->offsets[part] = (uint16_t)(end + 1);
		if (part == PART_MESSAGE)
			layout->is_registered = entry->type == NVTX_ENTRY_REGISTERED;
		if (part == PART_BEGIN)
			layout->clock = clock_of(entry);
		end += bytes;
		end_max = end > end_max ? end : end_max;
	}
	layout->bytes = (uint32_t)((end_max + alignment_max - 1) / alignment_max * alignment_max);
	if (schema->fields & NVTX_SCHEMA_HAS_STATIC_SIZE && schema->static_bytes >= end_max &&
	    schema->static_bytes <= OFFSET_MAX)
		layout->bytes = (uint32_t)schema->static_bytes;
	return layout->offsets[PART_BEGIN] != 0;
}

void torsh_nvtx_deferred_schema(void *domain, uint64_t id, const struct nvtx_schema *schema,
				uint32_t name)
{
	uint64_t needed = NVTX_SCHEMA_HAS_ENTRIES | NVTX_SCHEMA_HAS_N_ENTRIES;
	uint64_t use =
		schema->fields & NVTX_SCHEMA_HAS_FLAGS ? schema->flags & NVTX_SCHEMA_USES : 0;
	struct layout layout = {.name = name, .is_mark = use == NVTX_SCHEMA_IS_MARK};
	uint32_t i;

	if ((schema->fields & needed) != needed || !fill(&layout, schema))
		return;
	layout.is_mark = layout.is_mark || !layout.offsets[PART_END];
	i = atomic_fetch_add_explicit(&n_layouts, 1, memory_order_relaxed);
	if (i >= N_LAYOUTS) {
		torsh_ranges_note(
			"NVTX: the program has too many kinds of deferred events: the last "
			"ones are left out");
		return;
	}
	layouts[i] = layout;
	torsh_key_map_add(&known, torsh_key_map_mix((uintptr_t)domain, id), i + 1);
}

static const struct layout *find_layout(void *domain, uint64_t schema)
{
	uint64_t i = torsh_key_map_find(&known, torsh_key_map_mix((uintptr_t)domain, schema));

	return i ? &layouts[i - 1] : NULL;
}

/* Copy a part of the event; returns false, and leaves it as it is, if there is none. */
static bool read_part(const struct layout *layout, const char *event, enum part part, void *out,
		      size_t bytes)
{
	if (!layout->offsets[part])
		return false;
	memcpy(out, event + layout->offsets[part] - 1, bytes);
	return true;
}

static void submit(void *domain, const struct layout *layout, const char *event, uint64_t scope)
{
	struct range_attributes range = {.name = {.label = layout->name},
					 .domain = {.label = torsh_nvtx_label(domain)},
					 .source = RANGE_BY_NVTX};
	uint32_t category = 0;
	void *message = NULL;
	uint64_t at_ns[2];
	int64_t at[2];
	char room[16];

	read_part(layout, event, PART_BEGIN, &at[0], sizeof(*at));
	if (layout->is_mark || !read_part(layout, event, PART_END, &at[1], sizeof(*at)))
		at[1] = at[0];
	if (!torsh_nvtx_times(domain, layout->clock, scope, at, at_ns)) {
		torsh_ranges_note(
			"NVTX: deferred events are left out: their clock is not known, or "
			"had no two times in common with another one");
		return;
	}
	read_part(layout, event, PART_COLOR, &range.color, sizeof(range.color));
	if (read_part(layout, event, PART_CATEGORY, &category, sizeof(category)))
		range.category = torsh_nvtx_category(torsh_nvtx_label(domain), category, room);
	read_part(layout, event, PART_MESSAGE, &message, sizeof(message));
	if (message && layout->is_registered)
		range.name = (struct range_text){.label = torsh_nvtx_label(message)};
	else if (message)
		range.name = (struct range_text){.bytes = message};
	torsh_ranges_deferred(&range, at_ns[0], at_ns[1] > at_ns[0] ? at_ns[1] - at_ns[0] : 0,
			      layout->is_mark);
}

void torsh_nvtx_deferred_submit(void *domain, const struct nvtx_payload *payloads, size_t n)
{
	for (size_t i = 0; payloads && i < n; i++) {
		const struct layout *layout = find_layout(domain, payloads[i].schema);

		if (!layout || !payloads[i].bytes || payloads[i].size_bytes < layout->bytes)
			continue;
		submit(domain, layout, payloads[i].bytes, 0);
		return;
	}
}

void torsh_nvtx_deferred_batch(void *domain, const struct nvtx_batch *batch)
{
	const struct layout *layout = find_layout(domain, batch->schema);

	for (size_t at = 0; layout && batch->events && batch->size_bytes - at >= layout->bytes &&
			    at < batch->size_bytes;
	     at += layout->bytes)
		submit(domain, layout, (const char *)batch->events + at, batch->scope);
}
