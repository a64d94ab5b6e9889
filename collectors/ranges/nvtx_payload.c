/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * NVTX's extensions for payloads and counters. The message of a payload is read if its schema has a
 * string entry for it; otherwise the event has the schema's name. A consumer gets the call first.
 */
#include <stdatomic.h>
#include <string.h>

#include "agent/producer/key_map.h"
#include "collectors/ranges/nvtx/nvtx_deferred.h"
#include "collectors/ranges/nvtx_events.h"
#include "shim/ranges/nvtx.h"

/*
 * The cached part of a schema, in the value of a key map: its name's label, and the offset of the
 * message in the payload.
 */
#define SCHEMA_LABEL_BITS 24
#define SCHEMA_OFFSET_BITS 24
enum message_kind { MESSAGE_NONE, MESSAGE_POINTER, MESSAGE_REGISTERED };

static struct key_map schemas; /* domain and schema -> cached part */
static struct key_map counters; /* domain and counter -> label of the name */
static _Atomic uint64_t next_id = NVTX_SCHEMA_FIRST_OF_TOOL;

static uint64_t key_of(void *domain, uint64_t id)
{
	return torsh_key_map_mix((uintptr_t)domain, id);
}

/* If a consumer handles it, the consumer's result counts. */
static uint64_t choose_id(uint64_t theirs, uint64_t wanted)
{
	if (theirs)
		return theirs;
	return wanted ? wanted : atomic_fetch_add_explicit(&next_id, 1, memory_order_relaxed);
}

/*
 * Kind and offset of the message in a payload; none if the offset depends on the compiler's layout.
 */
static uint64_t find_message(const struct nvtx_schema *schema)
{
	uint64_t needed = NVTX_SCHEMA_HAS_ENTRIES | NVTX_SCHEMA_HAS_N_ENTRIES;

	if ((schema->fields & needed) != needed)
		return 0;
	for (size_t i = 0; i < schema->n_entries; i++) {
		const struct nvtx_schema_entry *entry = &schema->entries[i];
		uint64_t kind = entry->type == NVTX_ENTRY_REGISTERED ? MESSAGE_REGISTERED
				: entry->type == NVTX_ENTRY_CSTRING ||
						entry->type == NVTX_ENTRY_CSTRING_UTF8
					? MESSAGE_POINTER
					: MESSAGE_NONE;

		if (!(entry->flags & NVTX_ENTRY_IS_MESSAGE))
			continue;
		/* With a length the text itself is in the payload. */
		if (entry->flags & NVTX_ENTRY_IS_ARRAY || entry->detail || (i && !entry->offset) ||
		    entry->offset >> SCHEMA_OFFSET_BITS)
			return 0;
		return kind << SCHEMA_OFFSET_BITS | entry->offset;
	}
	return 0;
}

static struct range_attributes attributes_of(void *domain, const struct nvtx_payload *payloads,
					     size_t n)
{
	struct range_attributes range = {.domain = {.label = torsh_nvtx_label(domain)},
					 .source = RANGE_BY_NVTX};
	uint64_t schema = n && payloads
				  ? torsh_key_map_find(&schemas, key_of(domain, payloads[0].schema))
				  : 0;
	uint64_t message = schema >> SCHEMA_LABEL_BITS, kind = message >> SCHEMA_OFFSET_BITS;
	size_t offset = message & ((1u << SCHEMA_OFFSET_BITS) - 1);
	void *pointer = NULL;

	range.name.label = schema & ((1u << SCHEMA_LABEL_BITS) - 1);
	if (kind == MESSAGE_NONE || !payloads[0].bytes ||
	    payloads[0].size_bytes < offset + sizeof(pointer))
		return range;
	memcpy(&pointer, (const char *)payloads[0].bytes + offset, sizeof(pointer));
	if (pointer && kind == MESSAGE_POINTER)
		range.name = (struct range_text){.bytes = pointer};
	else if (pointer)
		range.name = (struct range_text){.label = torsh_nvtx_label(pointer)};
	return range;
}

/* The consumer's function in a slot, with the type of the agent's; NULL: it has none. */
#define CONSUMER(extension, slot, type) ((type *)torsh_nvtx_consumer_##extension[slot])

enum payload_slot {
	SLOT_SCHEMA_REGISTER,
	SLOT_ENUM_REGISTER,
	SLOT_MARK,
	SLOT_PUSH,
	SLOT_POP,
	SLOT_START,
	SLOT_END,
	SLOT_DOMAIN_IS_ENABLED,
	SLOT_TIMESTAMP,
	SLOT_TIME_DOMAIN,
	SLOT_TIME_SOURCE,
	SLOT_TIME_SOURCE_WITH_DATA,
	SLOT_SCOPE_REGISTER,
	SLOT_SYNC_POINT,
	SLOT_SYNC_POINTS,
	SLOT_CONVERSION,
	SLOT_SUBMIT,
	SLOT_SUBMIT_BATCH
};

enum counter_slot { SLOT_COUNTER_REGISTER, SLOT_SAMPLE_INT64, SLOT_SAMPLE_FLOAT64 };

typedef uint64_t register_schema_fn(void *domain, const struct nvtx_schema *schema);
typedef int push_fn(void *domain, const struct nvtx_payload *payloads, size_t n);
typedef void mark_fn(void *domain, const struct nvtx_payload *payloads, size_t n);
typedef uint64_t start_fn(void *domain, const struct nvtx_payload *payloads, size_t n);
typedef void end_fn(void *domain, uint64_t range, const struct nvtx_payload *payloads, size_t n);
typedef uint8_t is_enabled_fn(void *domain);
typedef int64_t timestamp_fn(void);
typedef uint64_t time_domain_fn(void *domain, const struct nvtx_time_domain *attributes);
typedef void time_source_fn(void *domain, uint64_t id, uint64_t flags, timestamp_fn *read);
typedef void time_source_with_data_fn(void *domain, uint64_t id, uint64_t flags,
				      int64_t (*read)(void *data), void *data);
typedef uint64_t register_scope_fn(void *domain, const struct nvtx_scope *attributes);
typedef void sync_point_fn(void *domain, uint64_t one, uint64_t other, int64_t at_one,
			   int64_t at_other);
typedef void sync_points_fn(void *domain, uint64_t from, uint64_t to,
			    const struct nvtx_sync_point *points, size_t n);
typedef void conversion_fn(void *domain, uint64_t from, uint64_t to, double slope, int64_t at_from,
			   int64_t at_to);
typedef void submit_batch_fn(void *domain, const struct nvtx_batch *batch);
typedef uint64_t register_counter_fn(void *domain, const struct nvtx_counter *counter);
typedef void sample_i64_fn(void *domain, uint64_t counter, int64_t value);
typedef void sample_f64_fn(void *domain, uint64_t counter, double value);

static uint64_t register_schema(void *domain, const struct nvtx_schema *schema)
{
	register_schema_fn *next = CONSUMER(payload, SLOT_SCHEMA_REGISTER, register_schema_fn);
	uint64_t id = choose_id(next ? next(domain, schema) : 0,
				schema->fields & NVTX_SCHEMA_HAS_ID ? schema->id : 0);
	uint64_t label =
		schema->fields & NVTX_SCHEMA_HAS_NAME ? torsh_ranges_label(schema->name) : 0;
	uint64_t known = find_message(schema) << SCHEMA_LABEL_BITS | label;

	if (known)
		torsh_key_map_add(&schemas, key_of(domain, id), known);
	torsh_nvtx_deferred_schema(domain, id, schema, (uint32_t)label);
	return id;
}

/* Enumerations only describe numbers in a payload. The attributes are forwarded to the consumer. */
static uint64_t register_enum(void *domain, const struct nvtx_schema *attributes)
{
	register_schema_fn *next = CONSUMER(payload, SLOT_ENUM_REGISTER, register_schema_fn);

	return choose_id(next ? next(domain, attributes) : 0, 0);
}

static void mark(void *domain, const struct nvtx_payload *payloads, size_t n)
{
	mark_fn *next = CONSUMER(payload, SLOT_MARK, mark_fn);
	struct range_attributes range = attributes_of(domain, payloads, n);

	if (next)
		next(domain, payloads, n);
	torsh_ranges_mark(&range);
}

static int push(void *domain, const struct nvtx_payload *payloads, size_t n)
{
	push_fn *next = CONSUMER(payload, SLOT_PUSH, push_fn);
	struct range_attributes range = attributes_of(domain, payloads, n);
	int theirs = next ? next(domain, payloads, n) : 0, ours = torsh_ranges_push(&range);

	return next ? theirs : ours;
}

static int pop(void *domain, const struct nvtx_payload *payloads, size_t n)
{
	push_fn *next = CONSUMER(payload, SLOT_POP, push_fn);
	int theirs = next ? next(domain, payloads, n) : 0;
	int ours = torsh_ranges_pop((struct range_text){.label = torsh_nvtx_label(domain)},
				    RANGE_BY_NVTX);

	return next ? theirs : ours;
}

static uint64_t start(void *domain, const struct nvtx_payload *payloads, size_t n)
{
	start_fn *next = CONSUMER(payload, SLOT_START, start_fn);
	struct range_attributes range = attributes_of(domain, payloads, n);

	return torsh_nvtx_start(&range, next ? next(domain, payloads, n) : 0, next != NULL);
}

static void end(void *domain, uint64_t range, const struct nvtx_payload *payloads, size_t n)
{
	end_fn *next = CONSUMER(payload, SLOT_END, end_fn);

	if (next)
		next(domain, range, payloads, n);
	torsh_nvtx_end(range);
}

/* Always enabled, whatever the consumer returns: the agent records it. */
static uint8_t domain_is_enabled(void *domain)
{
	(void)domain;
	return 1;
}

/* The consumer's, if it has one: it alone can convert them then. */
static int64_t timestamp(void)
{
	timestamp_fn *next = CONSUMER(payload, SLOT_TIMESTAMP, timestamp_fn);

	return next ? next() : torsh_nvtx_now();
}

static uint64_t register_time_domain(void *domain, const struct nvtx_time_domain *attributes)
{
	time_domain_fn *next = CONSUMER(payload, SLOT_TIME_DOMAIN, time_domain_fn);
	uint64_t id = choose_id(next ? next(domain, attributes) : 0, attributes->id);

	torsh_nvtx_time_domain(domain, id, attributes);
	return id;
}

static int64_t read_without_data(void *data)
{
	return ((timestamp_fn *)data)();
}

static void time_source(void *domain, uint64_t id, uint64_t flags, timestamp_fn *read)
{
	time_source_fn *next = CONSUMER(payload, SLOT_TIME_SOURCE, time_source_fn);

	if (next)
		next(domain, id, flags, read);
	if (read)
		torsh_nvtx_time_source(domain, id, read_without_data, (void *)read);
}

static void time_source_with_data(void *domain, uint64_t id, uint64_t flags,
				  int64_t (*read)(void *data), void *data)
{
	time_source_with_data_fn *next =
		CONSUMER(payload, SLOT_TIME_SOURCE_WITH_DATA, time_source_with_data_fn);

	if (next)
		next(domain, id, flags, read, data);
	torsh_nvtx_time_source(domain, id, read, data);
}

/* Scopes name what ran it: a device, a socket. Only their numbers count here. */
static uint64_t register_scope(void *domain, const struct nvtx_scope *attributes)
{
	register_scope_fn *next = CONSUMER(payload, SLOT_SCOPE_REGISTER, register_scope_fn);

	return choose_id(next ? next(domain, attributes) : 0, attributes->id);
}

static void sync_point(void *domain, uint64_t one, uint64_t other, int64_t at_one, int64_t at_other)
{
	sync_point_fn *next = CONSUMER(payload, SLOT_SYNC_POINT, sync_point_fn);

	if (next)
		next(domain, one, other, at_one, at_other);
	torsh_nvtx_time_sync(domain, one, other, at_one, at_other, 0);
}

static void sync_points(void *domain, uint64_t from, uint64_t to,
			const struct nvtx_sync_point *points, size_t n)
{
	sync_points_fn *next = CONSUMER(payload, SLOT_SYNC_POINTS, sync_points_fn);

	if (next)
		next(domain, from, to, points, n);
	for (size_t i = 0; i < n; i++)
		torsh_nvtx_time_sync(domain, from, to, points[i].from, points[i].to, 0);
}

static void conversion(void *domain, uint64_t from, uint64_t to, double slope, int64_t at_from,
		       int64_t at_to)
{
	conversion_fn *next = CONSUMER(payload, SLOT_CONVERSION, conversion_fn);

	if (next)
		next(domain, from, to, slope, at_from, at_to);
	torsh_nvtx_time_sync(domain, from, to, at_from, at_to, slope);
}

static void submit(void *domain, const struct nvtx_payload *payloads, size_t n)
{
	mark_fn *next = CONSUMER(payload, SLOT_SUBMIT, mark_fn);

	if (next)
		next(domain, payloads, n);
	torsh_nvtx_deferred_submit(domain, payloads, n);
}

static void submit_batch(void *domain, const struct nvtx_batch *batch)
{
	submit_batch_fn *next = CONSUMER(payload, SLOT_SUBMIT_BATCH, submit_batch_fn);

	if (next)
		next(domain, batch);
	torsh_nvtx_deferred_batch(domain, batch);
}

static uint64_t register_counter(void *domain, const struct nvtx_counter *counter)
{
	register_counter_fn *next = CONSUMER(counters, SLOT_COUNTER_REGISTER, register_counter_fn);
	uint64_t id = choose_id(next ? next(domain, counter) : 0,
				counter->struct_size >= sizeof(*counter) ? counter->id : 0);
	uint32_t label = torsh_ranges_label(counter->name);

	if (label)
		torsh_key_map_add(&counters, key_of(domain, id), label);
	return id;
}

static void sample(void *domain, uint64_t counter, uint32_t type, const void *value)
{
	struct range_attributes range = {
		.name = {.label = (uint32_t)torsh_key_map_find(&counters, key_of(domain, counter))},
		.domain = {.label = torsh_nvtx_label(domain)},
		.source = RANGE_BY_NVTX,
		.payload_type = type,
	};

	memcpy(&range.payload, value, sizeof(range.payload));
	torsh_ranges_value(&range, VALUE_COUNTER);
}

static void sample_i64(void *domain, uint64_t counter, int64_t value)
{
	sample_i64_fn *next = CONSUMER(counters, SLOT_SAMPLE_INT64, sample_i64_fn);

	if (next)
		next(domain, counter, value);
	sample(domain, counter, PAYLOAD_I64, &value);
}

static void sample_f64(void *domain, uint64_t counter, double value)
{
	sample_f64_fn *next = CONSUMER(counters, SLOT_SAMPLE_FLOAT64, sample_f64_fn);

	if (next)
		next(domain, counter, value);
	sample(domain, counter, PAYLOAD_F64, &value);
}

const intptr_t torsh_nvtx_payload[NVTX_EXTENSION_SLOTS] = {
	[SLOT_SCHEMA_REGISTER] = (intptr_t)register_schema,
	[SLOT_ENUM_REGISTER] = (intptr_t)register_enum,
	[SLOT_MARK] = (intptr_t)mark,
	[SLOT_PUSH] = (intptr_t)push,
	[SLOT_POP] = (intptr_t)pop,
	[SLOT_START] = (intptr_t)start,
	[SLOT_END] = (intptr_t)end,
	[SLOT_DOMAIN_IS_ENABLED] = (intptr_t)domain_is_enabled,
	[SLOT_TIMESTAMP] = (intptr_t)timestamp,
	[SLOT_TIME_DOMAIN] = (intptr_t)register_time_domain,
	[SLOT_TIME_SOURCE] = (intptr_t)time_source,
	[SLOT_TIME_SOURCE_WITH_DATA] = (intptr_t)time_source_with_data,
	[SLOT_SCOPE_REGISTER] = (intptr_t)register_scope,
	[SLOT_SYNC_POINT] = (intptr_t)sync_point,
	[SLOT_SYNC_POINTS] = (intptr_t)sync_points,
	[SLOT_CONVERSION] = (intptr_t)conversion,
	[SLOT_SUBMIT] = (intptr_t)submit,
	[SLOT_SUBMIT_BATCH] = (intptr_t)submit_batch,
};

const intptr_t torsh_nvtx_counters[NVTX_EXTENSION_SLOTS] = {
	[SLOT_COUNTER_REGISTER] = (intptr_t)register_counter,
	[SLOT_SAMPLE_INT64] = (intptr_t)sample_i64,
	[SLOT_SAMPLE_FLOAT64] = (intptr_t)sample_f64,
};
