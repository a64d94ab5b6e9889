/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The ITT collector: each call is forwarded to the consumer in the user's environment, if any, and
 * becomes an event. Times that a client passes (_ex) are not used: the event has the time of the
 * call.
 */
#include "shim/ranges/itt.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "agent/process/text_buffer.h"
#include "agent/producer/key_map.h"
#include "agent/producer/label.h"
#include "collectors/ranges/itt_handles.h"
#include "collectors/ranges/itt_values.h"
#include "shim/ranges/ranges.h"
#include "shim/ranges/session_calls.h"

#define CONTROL_DOMAIN "ittapi.control" /* for pause and resume */

/* A part of a range's number: ranges of one kind and domain differ by their id. */
enum range_kind { KIND_TASK, KIND_FRAME, KIND_REGION, KIND_EVENT };
#define RANGE_BY_ID (UINT64_C(1) << 63) /* no other source has numbers with this bit */

static struct key_map events; /* event + 1 -> label */
static _Thread_local char this_thread; /* its address identifies the thread */

static struct range_text domain_text(const struct itt_domain *domain)
{
	return (struct range_text){.bytes = domain ? domain->name : NULL};
}

static struct range_text string_text(const struct itt_string *string)
{
	return (struct range_text){.bytes = string ? string->text : NULL};
}

static struct range_attributes attributes_of(const struct itt_domain *domain,
					     struct range_text name, const char *category)
{
	return (struct range_attributes){
		.name = name,
		.domain = domain_text(domain),
		.category = {.bytes = category},
		.source = RANGE_BY_ITT,
	};
}

static uint64_t number_of(enum range_kind kind, const void *domain, struct itt_id id)
{
	uint64_t hash = torsh_key_map_mix((uintptr_t)domain, kind);

	hash = torsh_key_map_mix(hash, id.d1);
	hash = torsh_key_map_mix(hash, id.d2);
	return RANGE_BY_ID | torsh_key_map_mix(hash, id.d3);
}

static void push(const struct itt_domain *domain, struct range_text name)
{
	struct range_attributes range = attributes_of(domain, name, NULL);

	torsh_ranges_push(&range);
}

/* Not inlined: the caller's ids already take enough of the stack. */
static __attribute__((noinline)) void start(uint64_t number, const struct itt_domain *domain,
					    struct range_text name, const char *category)
{
	struct range_attributes range = attributes_of(domain, name, category);

	torsh_ranges_start(&range, number);
}

static void mark(const struct itt_domain *domain, struct range_text name)
{
	struct range_attributes range = attributes_of(domain, name, NULL);

	torsh_ranges_mark(&range);
}

/*
 * What each function records. Functions with a result get the consumer's result and whether there
 * is a consumer, and return the final one.
 */
static struct itt_domain *record_domain_create(struct itt_domain *theirs, bool has_consumer,
					       const char *name)
{
	return has_consumer || !name ? theirs : torsh_itt_domain(name);
}

static struct itt_string *record_string_handle_create(struct itt_string *theirs, bool has_consumer,
						      const char *name)
{
	return has_consumer || !name ? theirs : torsh_itt_string(name);
}

static struct itt_histogram *record_histogram_create(struct itt_histogram *theirs,
						     bool has_consumer,
						     const struct itt_domain *domain,
						     const char *name, uint32_t x_type,
						     uint32_t y_type)
{
	return has_consumer || !name ? theirs : torsh_itt_histogram(domain, name, x_type, y_type);
}

static void record_histogram_submit(struct itt_histogram *histogram, size_t n, void *x, void *y)
{
	torsh_itt_submit_histogram(histogram, n, x, y);
}

static void *record_counter_create_typed(void *theirs, bool has_consumer, const char *name,
					 const char *domain, uint32_t type)
{
	return (has_consumer && !theirs) || !name
		       ? theirs
		       : torsh_itt_add_counter(theirs, name, domain, type);
}

static void *record_counter_create(void *theirs, bool has_consumer, const char *name,
				   const char *domain)
{
	return record_counter_create_typed(theirs, has_consumer, name, domain, ITT_TYPE_U64);
}

static void *record_counter_create_v3(void *theirs, bool has_consumer,
				      const struct itt_domain *domain, const char *name,
				      uint32_t type)
{
	return record_counter_create_typed(theirs, has_consumer, name, domain ? domain->name : NULL,
					   type);
}

static void record_counter_set_value(void *counter, void *value)
{
	torsh_itt_set_counter(counter, value);
}

static void record_counter_inc_delta(void *counter, uint64_t by)
{
	torsh_itt_count(torsh_itt_find_counter(counter), by);
}

static void record_counter_inc(void *counter)
{
	record_counter_inc_delta(counter, 1);
}

static void record_counter_dec_delta(void *counter, uint64_t by)
{
	record_counter_inc_delta(counter, -by);
}

static void record_counter_dec(void *counter)
{
	record_counter_dec_delta(counter, 1);
}

static void record_counter_set_value_ex(void *counter, void *clock, uint64_t at, void *value)
{
	(void)clock;
	(void)at;
	record_counter_set_value(counter, value);
}

static void record_counter_set_value_v3(void *counter, void *value)
{
	record_counter_set_value(counter, value);
}

static void record_counter_inc_delta_v3(const struct itt_domain *domain, struct itt_string *name,
					uint64_t by)
{
	torsh_itt_count(torsh_itt_named_counter(domain, name), by);
}

static void record_counter_inc_v3(const struct itt_domain *domain, struct itt_string *name)
{
	record_counter_inc_delta_v3(domain, name, 1);
}

static void record_counter_dec_delta_v3(const struct itt_domain *domain, struct itt_string *name,
					uint64_t by)
{
	record_counter_inc_delta_v3(domain, name, -by);
}

static void record_counter_dec_v3(const struct itt_domain *domain, struct itt_string *name)
{
	record_counter_dec_delta_v3(domain, name, 1);
}

static void record_task_begin(const struct itt_domain *domain, struct itt_id id,
			      struct itt_id parent, struct itt_string *name)
{
	(void)id;
	(void)parent;
	push(domain, string_text(name));
}

/* A task named by a function: by its address, which may be resolved to a symbol. */
static void record_task_begin_fn(const struct itt_domain *domain, struct itt_id id,
				 struct itt_id parent, void *function)
{
	char name[2 + 16 + 1] = "0x", *at = name + 2;

	(void)id;
	(void)parent;
	for (int shift = 60; shift >= 0; shift -= 4)
		*at++ = "0123456789abcdef"[(uintptr_t)function >> shift & 15];
	*at = '\0';
	push(domain, (struct range_text){.bytes = name});
}

static void record_task_end(const struct itt_domain *domain)
{
	torsh_ranges_pop(domain_text(domain), RANGE_BY_ITT);
}

static void record_task_begin_ex(const struct itt_domain *domain, void *clock, uint64_t at,
				 struct itt_id id, struct itt_id parent, struct itt_string *name)
{
	(void)clock;
	(void)at;
	record_task_begin(domain, id, parent, name);
}

static void record_task_end_ex(const struct itt_domain *domain, void *clock, uint64_t at)
{
	(void)clock;
	(void)at;
	record_task_end(domain);
}

static void record_task_begin_overlapped(const struct itt_domain *domain, struct itt_id id,
					 struct itt_id parent, struct itt_string *name)
{
	(void)parent;
	start(number_of(KIND_TASK, domain, id), domain, string_text(name), NULL);
}

static void record_task_end_overlapped(const struct itt_domain *domain, struct itt_id id)
{
	torsh_ranges_end(number_of(KIND_TASK, domain, id));
}

static void record_task_begin_overlapped_ex(const struct itt_domain *domain, void *clock,
					    uint64_t at, struct itt_id id, struct itt_id parent,
					    struct itt_string *name)
{
	(void)clock;
	(void)at;
	record_task_begin_overlapped(domain, id, parent, name);
}

static void record_task_end_overlapped_ex(const struct itt_domain *domain, void *clock, uint64_t at,
					  struct itt_id id)
{
	(void)clock;
	(void)at;
	record_task_end_overlapped(domain, id);
}

static void record_region_begin(const struct itt_domain *domain, struct itt_id id,
				struct itt_id parent, struct itt_string *name)
{
	(void)parent;
	start(number_of(KIND_REGION, domain, id), domain, string_text(name), "region");
}

static void record_region_end(const struct itt_domain *domain, struct itt_id id)
{
	torsh_ranges_end(number_of(KIND_REGION, domain, id));
}

static uint64_t frame_number(const struct itt_domain *domain, const struct itt_id *id)
{
	return number_of(KIND_FRAME, domain, id ? *id : (struct itt_id){0});
}

/* Frames have only their domain's name. */
static void record_frame_begin_v3(const struct itt_domain *domain, struct itt_id *id)
{
	start(frame_number(domain, id), domain, domain_text(domain), "frame");
}

static void record_frame_end_v3(const struct itt_domain *domain, struct itt_id *id)
{
	torsh_ranges_end(frame_number(domain, id));
}

/*
 * A completed frame: marked, with its duration, in ns if the times are from the agent's
 * get_timestamp.
 */
static void record_frame_submit_v3(const struct itt_domain *domain, struct itt_id *id,
				   uint64_t begin, uint64_t end)
{
	struct range_attributes range = attributes_of(domain, domain_text(domain), "frame");

	(void)id;
	if (!torsh_itt_consumer.get_timestamp) {
		range.payload_type = PAYLOAD_U64;
		range.payload = end - begin;
	}
	torsh_ranges_mark(&range);
}

static uint64_t record_get_timestamp(uint64_t theirs, bool has_consumer)
{
	struct timespec now;

	if (has_consumer)
		return theirs;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void record_marker(const struct itt_domain *domain, struct itt_id id,
			  struct itt_string *name, uint32_t scope)
{
	(void)id;
	(void)scope;
	mark(domain, string_text(name));
}

static void record_marker_ex(const struct itt_domain *domain, void *clock, uint64_t at,
			     struct itt_id id, struct itt_string *name, uint32_t scope)
{
	(void)clock;
	(void)at;
	record_marker(domain, id, name, scope);
}

/* Metadata is a separate mark: the first of its numbers as payload; text as "key=text". */
static void record_metadata_add_with_scope(const struct itt_domain *domain, uint32_t scope,
					   struct itt_string *key, uint32_t type, size_t n,
					   void *data)
{
	struct range_attributes range = attributes_of(domain, string_text(key), "metadata");

	(void)scope;
	if (n)
		torsh_itt_read_number(&range, type, data);
	torsh_ranges_mark(&range);
}

static void record_metadata_str_add_with_scope(const struct itt_domain *domain, uint32_t scope,
					       struct itt_string *key, const char *data, size_t n)
{
	struct text text = torsh_text_map(LABEL_BUFFER_BYTES);
	struct range_attributes range =
		attributes_of(domain, (struct range_text){.bytes = text.bytes}, "metadata");

	(void)scope;
	torsh_text_put(&text, key && key->text ? key->text : "");
	torsh_text_put(&text, "=");
	/* 0: NUL-terminated. */
	if (data)
		torsh_text_put_bytes(&text, data, strnlen(data, n ? n : LABEL_BUFFER_BYTES));
	torsh_ranges_mark(&range);
	torsh_text_unmap(&text);
}

static void record_metadata_add(const struct itt_domain *domain, struct itt_id id,
				struct itt_string *key, uint32_t type, size_t n, void *data)
{
	(void)id;
	record_metadata_add_with_scope(domain, 0, key, type, n, data);
}

static void record_metadata_str_add(const struct itt_domain *domain, struct itt_id id,
				    struct itt_string *key, const char *data, size_t n)
{
	(void)id;
	record_metadata_str_add_with_scope(domain, 0, key, data, n);
}

static void record_thread_set_name(const char *name)
{
	torsh_ranges_name_thread(0, (struct range_text){.bytes = name}, RANGE_BY_ITT);
}

/* An event is the label of its name or, with a consumer, the consumer's number. */
static int record_event_create(int theirs, bool has_consumer, const char *name, int n)
{
	struct text text = torsh_text_map(LABEL_BUFFER_BYTES);
	uint32_t label;
	int event;

	if (name)
		torsh_text_put_bytes(&text, name,
				     strnlen(name, n > 0 ? (size_t)n : LABEL_BUFFER_BYTES));
	label = torsh_ranges_label(text.bytes);
	torsh_text_unmap(&text);
	event = has_consumer ? theirs : (int)label;
	if (label)
		torsh_key_map_add(&events, (uint64_t)(uint32_t)event + 1, label);
	return event;
}

/* Per thread: another may be in the same event. */
static struct itt_id event_id(int event)
{
	return (struct itt_id){.d1 = (uint32_t)event, .d2 = (uintptr_t)&this_thread};
}

static int record_event_start(int theirs, bool has_consumer, int event)
{
	uint32_t label = (uint32_t)torsh_key_map_find(&events, (uint64_t)(uint32_t)event + 1);

	start(number_of(KIND_EVENT, NULL, event_id(event)), NULL,
	      (struct range_text){.label = label}, NULL);
	return has_consumer ? theirs : 0;
}

static int record_event_end(int theirs, bool has_consumer, int event)
{
	torsh_ranges_end(number_of(KIND_EVENT, NULL, event_id(event)));
	return has_consumer ? theirs : 0;
}

/*
 * Pauses are only marked; the recording continues, because a gap would make its memory figures
 * wrong.
 */
static void mark_control(const char *name)
{
	static const struct itt_domain domain = {.name = CONTROL_DOMAIN};

	mark(&domain, (struct range_text){.bytes = name});
}

static void record_pause(void)
{
	mark_control("pause");
	torsh_session_switch(false);
}

static void record_resume(void)
{
	torsh_session_switch(true);
	mark_control("resume");
}

static void record_pause_scoped(uint32_t scope)
{
	(void)scope;
	record_pause();
}

static void record_resume_scoped(uint32_t scope)
{
	(void)scope;
	record_resume();
}

/* The functions themselves: the consumer's comes first, so that its time is not in the range. */
#define UNPACK(...) __VA_ARGS__
#define ITT(result, name, parameters, arguments)                                              \
	static result do_##name parameters                                                    \
	{                                                                                     \
		bool has_consumer = torsh_itt_consumer.name != NULL;                          \
		result theirs = has_consumer ? torsh_itt_consumer.name arguments : (result)0; \
                                                                                              \
		return record_##name(theirs, has_consumer MORE(UNPACK arguments));            \
	}
#define ITT_VOID(name, parameters, arguments)              \
	static void do_##name parameters                   \
	{                                                  \
		if (torsh_itt_consumer.name)               \
			torsh_itt_consumer.name arguments; \
		record_##name arguments;                   \
	}
#define ITT_ALSO(other, name)
/* Further arguments, possibly none: expanded in two steps for that case. */
#define MORE(...) MORE_(__VA_ARGS__)
#define MORE_(...) , ##__VA_ARGS__
#include "shim/ranges/itt.def"
#undef ITT
#undef ITT_VOID
#undef ITT_ALSO
#undef MORE
#undef MORE_
#undef UNPACK

const struct itt_functions torsh_itt_functions = {
#define ITT(result, name, parameters, arguments) .name = do_##name,
#define ITT_VOID(name, parameters, arguments) .name = do_##name,
#define ITT_ALSO(other, name)
#include "shim/ranges/itt.def"
#undef ITT
#undef ITT_VOID
#undef ITT_ALSO
};
