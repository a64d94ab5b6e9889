/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The NVTX collector: each call is forwarded to the consumer in the user's environment, if any, and
 * becomes an event.
 *
 * Without a consumer, handles of domains and registered strings are the agent's: the label of their
 * text, in odd numbers, so that they are never NULL, mean the same in every DSO, and need no
 * memory. Otherwise they are the consumer's, and labels are looked up by them.
 */
#include "shim/ranges/nvtx.h"

#include <stdbool.h>
#include <string.h>

#include "collectors/ranges/nvtx_events.h"
#include "agent/process/text_buffer.h"
#include "agent/producer/key_map.h"
#include "agent/producer/label.h"
#include "shim/ranges/ranges.h"

/* NVTX ranges have other numbers than torsh.h's: a consumer's ids may be anything. */
#define RANGE_NUMBER(id) ((id) | UINT64_C(1) << 62)
#define NOT_THE_CONSUMERS (UINT64_C(1) << 61)

static struct key_map handles; /* the consumer's handle -> label */
static struct key_map categories; /* domain's label and category's number -> label */

static void *handle_of(uint32_t label)
{
	return (void *)((uintptr_t)label << 1 | 1);
}

uint32_t torsh_nvtx_label(void *handle)
{
	if (!torsh_nvtx_has_consumer)
		return (uint32_t)((uintptr_t)handle >> 1);
	return handle ? (uint32_t)torsh_key_map_find(&handles, (uintptr_t)handle) : 0;
}

/*
 * The handle to return for a label: the consumer's, which is stored, or the agent's. A consumer
 * never gets the agent's.
 */
static void *make_handle(void *theirs, uint32_t label)
{
	if (!torsh_nvtx_has_consumer)
		return handle_of(label);
	if (theirs && label)
		torsh_key_map_add(&handles, (uintptr_t)theirs, label);
	return theirs;
}

static uint64_t category_key(uint32_t domain, uint32_t category)
{
	return torsh_key_map_mix(domain, category);
}

static void name_category(uint32_t domain, uint32_t category, uint32_t label)
{
	if (category && label)
		torsh_key_map_add(&categories, category_key(domain, category), label);
}

struct range_text torsh_nvtx_category(uint32_t domain, uint32_t category, char *room)
{
	uint32_t label =
		category ? (uint32_t)torsh_key_map_find(&categories, category_key(domain, category))
			 : 0;
	char *at = room + 15;

	if (!category || label)
		return (struct range_text){.label = label};
	for (*at = '\0'; category; category /= 10)
		*--at = (char)('0' + category % 10);
	return (struct range_text){.bytes = at};
}

/* Encode one character as UTF-8; returns its bytes. */
static uint32_t put_character(char *out, uint32_t c)
{
	uint32_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	out[0] = n == 1 ? (char)c : (char)(0xf00 >> n | c >> 6 * (n - 1));
	for (uint32_t i = 1; i < n; i++)
		out[i] = (char)(0x80 | (c >> 6 * (n - 1 - i) & 0x3f));
	return n;
}

/*
 * The label of a wide text, which is UTF-32 here; invalid characters become U+FFFD. It is assembled
 * in pages of its own: the stack may be a signal handler's small one.
 */
static uint32_t label_of_wide(const wchar_t *wide)
{
	struct text text = torsh_text_map(LABEL_BUFFER_BYTES);
	uint32_t label;
	char bytes[4];

	for (; wide && *wide && text.length <= LABEL_MAX; wide++) {
		uint32_t c = (uint32_t)*wide;

		if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
			c = 0xfffd;
		torsh_text_put_bytes(&text, bytes, put_character(bytes, c));
	}
	label = torsh_ranges_label(text.bytes);
	torsh_text_unmap(&text);
	return label;
}

struct range_text torsh_nvtx_text(int32_t type, const void *message)
{
	switch (type) {
	case NVTX_MESSAGE_ASCII:
		return (struct range_text){.bytes = message};
	case NVTX_MESSAGE_UNICODE:
		return (struct range_text){.label = label_of_wide(message)};
	case NVTX_MESSAGE_REGISTERED:
		return (struct range_text){.label = torsh_nvtx_label((void *)message)};
	default:
		return (struct range_text){0};
	}
}

static void read_payload(const struct nvtx_event *event, struct range_attributes *range)
{
	switch (event->payload_type) {
	case NVTX_PAYLOAD_U64:
		range->payload_type = PAYLOAD_U64;
		range->payload = event->payload.u64;
		break;
	case NVTX_PAYLOAD_I64:
		range->payload_type = PAYLOAD_I64;
		range->payload = event->payload.u64;
		break;
	case NVTX_PAYLOAD_F64:
		range->payload_type = PAYLOAD_F64;
		range->payload = event->payload.u64;
		break;
	case NVTX_PAYLOAD_U32:
		range->payload_type = PAYLOAD_U64;
		range->payload = event->payload.u32;
		break;
	case NVTX_PAYLOAD_I32:
		range->payload_type = PAYLOAD_I64;
		range->payload = (uint64_t)(int64_t)event->payload.i32;
		break;
	case NVTX_PAYLOAD_F32: {
		double wide = event->payload.f32;

		range->payload_type = PAYLOAD_F64;
		memcpy(&range->payload, &wide, sizeof(wide));
		break;
	}
	}
}

/* room has 16 bytes, for torsh_nvtx_category. */
static struct range_attributes attributes_of(uint32_t domain, const struct nvtx_event *event,
					     char *room)
{
	struct range_attributes range = {.domain = {.label = domain}, .source = RANGE_BY_NVTX};
	struct nvtx_event known = {0};

	if (!event)
		return range;
	memcpy(&known, event, event->size < sizeof(known) ? event->size : sizeof(known));
	range.color = known.color_type == NVTX_COLOR_ARGB ? known.color : 0;
	range.category = torsh_nvtx_category(domain, known.category, room);
	read_payload(&known, &range);
	range.name = torsh_nvtx_text(known.message_type, known.message.ascii);
	return range;
}

static struct range_attributes attributes_text(struct range_text message)
{
	return (struct range_attributes){.name = message, .source = RANGE_BY_NVTX};
}

static void mark(uint32_t domain, const struct nvtx_event *event)
{
	char room[16];
	struct range_attributes range = attributes_of(domain, event, room);

	torsh_ranges_mark(&range);
}

static void mark_text(struct range_text message)
{
	struct range_attributes range = attributes_text(message);

	torsh_ranges_mark(&range);
}

static int push(uint32_t domain, const struct nvtx_event *event)
{
	char room[16];
	struct range_attributes range = attributes_of(domain, event, room);

	return torsh_ranges_push(&range);
}

static int push_text(struct range_text message)
{
	struct range_attributes range = attributes_text(message);

	return torsh_ranges_push(&range);
}

/* Inlined: one frame less on small stacks. */
static inline __attribute__((always_inline)) uint64_t
start_range(const struct range_attributes *range, uint64_t theirs, bool has_consumer)
{
	uint64_t id = theirs;

	if (!has_consumer)
		id = torsh_ranges_number() | (torsh_nvtx_has_consumer ? NOT_THE_CONSUMERS : 0);
	torsh_ranges_start(range, RANGE_NUMBER(id));
	return id;
}

uint64_t torsh_nvtx_start(const struct range_attributes *range, uint64_t theirs, bool has_consumer)
{
	return start_range(range, theirs, has_consumer);
}

void torsh_nvtx_end(uint64_t id)
{
	torsh_ranges_end(RANGE_NUMBER(id));
}

static uint64_t start(uint64_t theirs, bool has_consumer, uint32_t domain,
		      const struct nvtx_event *event)
{
	char room[16];
	struct range_attributes range = attributes_of(domain, event, room);

	return start_range(&range, theirs, has_consumer);
}

static uint64_t start_text(uint64_t theirs, bool has_consumer, struct range_text message)
{
	struct range_attributes range = attributes_text(message);

	return start_range(&range, theirs, has_consumer);
}

/*
 * What each function records. Functions with a result get the consumer's result and whether there
 * is a consumer, and return the final one: the consumer's if there is one.
 */
#define RESULT(ours) (has_consumer ? theirs : (ours))

static void record_MarkEx(const struct nvtx_event *event)
{
	mark(0, event);
}

static void record_MarkA(const char *message)
{
	mark_text((struct range_text){.bytes = message});
}

static void record_MarkW(const wchar_t *message)
{
	mark_text((struct range_text){.label = label_of_wide(message)});
}

static uint64_t record_RangeStartEx(uint64_t theirs, bool has_consumer,
				    const struct nvtx_event *event)
{
	return start(theirs, has_consumer, 0, event);
}

static uint64_t record_RangeStartA(uint64_t theirs, bool has_consumer, const char *message)
{
	return start_text(theirs, has_consumer, (struct range_text){.bytes = message});
}

static uint64_t record_RangeStartW(uint64_t theirs, bool has_consumer, const wchar_t *message)
{
	return start_text(theirs, has_consumer,
			  (struct range_text){.label = label_of_wide(message)});
}

static void record_RangeEnd(uint64_t range)
{
	torsh_nvtx_end(range);
}

static int record_RangePushEx(int theirs, bool has_consumer, const struct nvtx_event *event)
{
	int ours = push(0, event);

	return RESULT(ours);
}

static int record_RangePushA(int theirs, bool has_consumer, const char *message)
{
	int ours = push_text((struct range_text){.bytes = message});

	return RESULT(ours);
}

static int record_RangePushW(int theirs, bool has_consumer, const wchar_t *message)
{
	int ours = push_text((struct range_text){.label = label_of_wide(message)});

	return RESULT(ours);
}

static int record_RangePop(int theirs, bool has_consumer)
{
	int ours = torsh_ranges_pop((struct range_text){0}, RANGE_BY_NVTX);

	return RESULT(ours);
}

static void record_NameCategoryA(uint32_t category, const char *name)
{
	name_category(0, category, torsh_ranges_label(name));
}

static void record_NameCategoryW(uint32_t category, const wchar_t *name)
{
	name_category(0, category, label_of_wide(name));
}

static void record_NameOsThreadA(uint32_t tid, const char *name)
{
	torsh_ranges_name_thread(tid, (struct range_text){.bytes = name}, RANGE_BY_NVTX);
}

static void record_NameOsThreadW(uint32_t tid, const wchar_t *name)
{
	torsh_ranges_name_thread(tid, (struct range_text){.label = label_of_wide(name)},
				 RANGE_BY_NVTX);
}

static void record_DomainMarkEx(void *domain, const struct nvtx_event *event)
{
	mark(torsh_nvtx_label(domain), event);
}

static uint64_t record_DomainRangeStartEx(uint64_t theirs, bool has_consumer, void *domain,
					  const struct nvtx_event *event)
{
	return start(theirs, has_consumer, torsh_nvtx_label(domain), event);
}

static void record_DomainRangeEnd(void *domain, uint64_t range)
{
	(void)domain;
	torsh_nvtx_end(range);
}

static int record_DomainRangePushEx(int theirs, bool has_consumer, void *domain,
				    const struct nvtx_event *event)
{
	int ours = push(torsh_nvtx_label(domain), event);

	return RESULT(ours);
}

static int record_DomainRangePop(int theirs, bool has_consumer, void *domain)
{
	int ours = torsh_ranges_pop((struct range_text){.label = torsh_nvtx_label(domain)},
				    RANGE_BY_NVTX);

	return RESULT(ours);
}

/* Named objects (mutexes, threads of a library) have no times to record. */
static void *record_DomainResourceCreate(void *theirs, bool has_consumer, void *domain,
					 void *attributes)
{
	(void)domain;
	(void)attributes;
	return RESULT(torsh_nvtx_has_consumer ? NULL : handle_of(0));
}

static void record_DomainResourceDestroy(void *resource)
{
	(void)resource;
}

static void record_DomainNameCategoryA(void *domain, uint32_t category, const char *name)
{
	name_category(torsh_nvtx_label(domain), category, torsh_ranges_label(name));
}

static void record_DomainNameCategoryW(void *domain, uint32_t category, const wchar_t *name)
{
	name_category(torsh_nvtx_label(domain), category, label_of_wide(name));
}

static void *record_DomainRegisterStringA(void *theirs, bool has_consumer, void *domain,
					  const char *string)
{
	(void)domain;
	(void)has_consumer;
	return make_handle(theirs, torsh_ranges_label(string));
}

static void *record_DomainRegisterStringW(void *theirs, bool has_consumer, void *domain,
					  const wchar_t *string)
{
	(void)domain;
	(void)has_consumer;
	return make_handle(theirs, label_of_wide(string));
}

static void *record_DomainCreateA(void *theirs, bool has_consumer, const char *name)
{
	(void)has_consumer;
	return make_handle(theirs, torsh_ranges_label(name));
}

static void *record_DomainCreateW(void *theirs, bool has_consumer, const wchar_t *name)
{
	(void)has_consumer;
	return make_handle(theirs, label_of_wide(name));
}

static void record_DomainDestroy(void *domain)
{
	(void)domain;
}

static void record_Initialize(const void *reserved)
{
	(void)reserved;
}

/* The functions themselves: the consumer's comes first, so that its time is not in the range. */
#define UNPACK(...) __VA_ARGS__
#define NVTX(module, slot, result, Name, parameters, arguments)                                \
	static result do_##Name parameters                                                     \
	{                                                                                      \
		bool has_consumer = torsh_nvtx_consumer.Name != NULL;                          \
		result theirs = has_consumer ? torsh_nvtx_consumer.Name arguments : (result)0; \
                                                                                               \
		return record_##Name(theirs, has_consumer MORE(UNPACK arguments));             \
	}
#define NVTX_VOID(module, slot, Name, parameters, arguments) \
	static void do_##Name parameters                     \
	{                                                    \
		if (torsh_nvtx_consumer.Name)                \
			torsh_nvtx_consumer.Name arguments;  \
		record_##Name arguments;                     \
	}
/* Further arguments, possibly none: expanded in two steps for that case. */
#define MORE(...) MORE_(__VA_ARGS__)
#define MORE_(...) , ##__VA_ARGS__
#include "shim/ranges/nvtx.def"
#undef NVTX
#undef NVTX_VOID
#undef MORE
#undef MORE_
#undef UNPACK

const struct nvtx_functions torsh_nvtx_functions = {
#define NVTX(module, slot, result, Name, parameters, arguments) .Name = do_##Name,
#define NVTX_VOID(module, slot, Name, parameters, arguments) .Name = do_##Name,
#include "shim/ranges/nvtx.def"
#undef NVTX
#undef NVTX_VOID
};
