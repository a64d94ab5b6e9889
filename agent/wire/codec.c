/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The decoder of codec.h, and the cold half of the encoder. Reads bytes that another process wrote:
 * every length is checked before use, and the type of every table index has the table's range.
 */
#include "agent/wire/codec.h"

#include <errno.h>
#include <stdbool.h>

/* A copy for each constant of an argument, see reader.is_far. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* No free and no alloc has as many bytes, with the 8 that are read for its last field. */
#define FAR_BYTES 192u
_Static_assert(2 + 4 * 8 + 2 + 3 * CODEC_INLINE_IDS + 8 <= FAR_BYTES,
	       "two bytes, four numbers, the counts of a stack, its ids, and what is read beyond");

struct reader {
	const uint8_t *at, *end;
	bool is_far; /* the end is at least FAR_BYTES after the event's start: no read is checked */
	bool is_short; /* a read went beyond the end */
};

/* The last bytes, fewer than 8, or none. */
static uint64_t read_suffix(struct reader *in, uint32_t n)
{
	uint64_t value = 0;

	if ((size_t)(in->end - in->at) < n) {
		in->is_short = true;
		in->at = in->end;
		return 0;
	}
	memcpy(&value, in->at, n);
	in->at += n;
	return value;
}

/* n is 1 to 8. A load of 8 bytes that is then masked is faster than a copy of n bytes. */
static ALWAYS_INLINE uint64_t read_bytes(struct reader *in, uint32_t n)
{
	static const uint64_t masks[] = {0,	     0xff,	   0xffff,	   0xffffff,
					 0xffffffff, 0xffffffffff, 0xffffffffffff, 0xffffffffffffff,
					 UINT64_MAX};
	uint64_t value;

	if (!in->is_far && in->end - in->at < 8)
		return read_suffix(in, n);
	memcpy(&value, in->at, 8);
	in->at += n;
	return value & masks[n];
}

static ALWAYS_INLINE uint64_t read_stamp(struct codec *codec, struct reader *in, uint32_t lead)
{
	return codec->stamp + read_bytes(in, 1u << (lead >> 2 & 3));
}

static ALWAYS_INLINE int read_address(const struct codec *codec, struct reader *in, uint32_t code,
				      uint64_t *address)
{
	static const uint8_t bytes[] = {1, 1, 2, 3, 4, 6};
	uint64_t value;

	if (__builtin_expect(code >= 6, 0)) {
		*address = read_bytes(in, 8);
		return code == 6 ? -EPROTO : 0;
	}
	value = read_bytes(in, bytes[code]);
	if (code == 0)
		*address = codec->addresses[value];
	else
		*address = (codec->unit + (value >> 1 ^ (0 - (value & 1)))) << 4;
	return 0;
}

static inline void cache_address(struct codec *codec, uint64_t address)
{
	codec->unit = address >> 4;
	codec->addresses[torsh_codec_address_slot(codec->unit)] = address;
}

static ALWAYS_INLINE void read_ids(struct reader *in, struct codec_stack *stack, uint32_t n)
{
	stack->n = n;
	for (uint32_t i = 0; i < n; i++)
		stack->ids[i] = (uint32_t)read_bytes(in, 3);
}

static void use_change(struct codec_stack *stack, const struct codec_change *change)
{
	uint32_t n = change->words[0] >> 16 & 0xffff;

	stack->form = CODEC_STACK_GIVEN;
	stack->pop = change->words[0] & 0xffff;
	stack->n = n <= CODEC_CHANGE_IDS ? n : CODEC_CHANGE_IDS;
	/* Of little-endian words: the ids are in order. */
	memcpy(stack->ids, (const uint8_t *)change->words + sizeof(uint32_t),
	       CODEC_CHANGE_IDS * sizeof(uint32_t));
}

static void cache_change(struct codec *codec, struct codec_stack *stack)
{
	struct codec_change change = torsh_codec_change(stack->pop, stack->n, stack->ids);

	stack->recent = torsh_codec_change_slot(&change);
	codec->changes[stack->recent] = change;
}

static ALWAYS_INLINE int read_stack(const struct codec *codec, struct reader *in, uint32_t form,
				    struct codec_stack *stack)
{
	stack->form = form;
	switch (form) {
	case CODEC_STACK_RECENT:
		stack->recent = (uint32_t)read_bytes(in, 1);
		stack->is_repeated = true;
		use_change(stack, &codec->changes[stack->recent]);
		break;
	case CODEC_STACK_GIVEN:
		stack->pop = (uint32_t)read_bytes(in, 1);
		stack->n = (uint32_t)read_bytes(in, 1);
		if (stack->n > CODEC_INLINE_IDS)
			return -EPROTO;
		read_ids(in, stack, stack->n);
		break;
	}
	return 0;
}

static ALWAYS_INLINE long decode_free(struct codec *codec, struct reader *in, uint32_t lead,
				      struct event *event)
{
	uint64_t stamp, address;

	if (read_address(codec, in, lead >> 4 & 7, &address))
		return -EPROTO;
	stamp = read_stamp(codec, in, lead);
	if (in->is_short)
		return 0;
	codec->stamp = event->stamp = stamp;
	event->id = lead & 0x80 ? EVENT_REALLOC_BEGIN : EVENT_FREE;
	event->free.address = address;
	cache_address(codec, address);
	return 1;
}

static ALWAYS_INLINE long decode_alloc(struct codec *codec, struct reader *in, uint32_t lead,
				       struct event *event, struct codec_stack *stack)
{
	uint32_t second = (uint32_t)read_bytes(in, 1), form = second >> 2 & 3;
	uint64_t stamp, address;

	if (read_address(codec, in, lead >> 4 & 7, &address))
		return -EPROTO;
	event->alloc.address = address;
	event->alloc.entry = second >> 4 & 7;
	event->alloc.size = read_bytes(in, 1u << (second & 3));
	if (!(lead & 0x80))
		event->alloc.usable = torsh_codec_expected_usable(event->alloc.size);
	else if (second & 0x80)
		event->alloc.usable = read_bytes(in, 8);
	else
		event->alloc.usable = event->alloc.size + read_bytes(in, 2);
	if (event->alloc.entry >= N_ALLOC_ENTRIES || read_stack(codec, in, form, stack))
		return -EPROTO;
	stamp = read_stamp(codec, in, lead);
	if (in->is_short)
		return 0;
	codec->stamp = event->stamp = stamp;
	event->id = EVENT_ALLOC;
	cache_address(codec, address);
	if (form == CODEC_STACK_GIVEN && stack->n <= CODEC_CHANGE_IDS)
		cache_change(codec, stack);
	return 1;
}

/* Fields beyond the end of the payload are 0. */
static uint64_t read_field(struct reader *in, uint32_t n)
{
	uint64_t value = 0;

	if ((size_t)(in->end - in->at) < n) {
		in->at = in->end;
		return 0;
	}
	memcpy(&value, in->at, n);
	in->at += n;
	return value;
}

#define READ_u32(in) (uint32_t) read_field(in, 4)
#define READ_i32(in) (int32_t)(uint32_t) read_field(in, 4)
#define READ_u64(in) read_field(in, 8)
#define READ_label(in) (uint32_t) read_field(in, 4)
#define READ_moment(in) read_field(in, 8)

static void unpack(struct reader *in, struct event *event)
{
	switch (event->id) {
#define EVENT(id, NAME, name, text) \
	case EVENT_##NAME: {        \
		struct event_##name *e = &event->name;
#define FIELD(type, name) e->name = READ_##type(in);
#define END(NAME) \
	break;    \
	}
#include "agent/wire/events.def"
#undef EVENT
#undef FIELD
#undef END
	}
}

#undef READ_u32
#undef READ_i32
#undef READ_u64
#undef READ_label
#undef READ_moment

static int unpack_stack(struct reader *payload, struct event *event, struct codec_stack *stack)
{
	stack->form = CODEC_STACK_GIVEN;
	stack->pop = event->stack.pop;
	if (event->stack.n_push > CODEC_STACK_IDS ||
	    (size_t)(payload->end - payload->at) < 3 * event->stack.n_push)
		return -EPROTO;
	read_ids(payload, stack, event->stack.n_push);
	return 0;
}

/* `in` is behind the lead byte. Returns the result of torsh_codec_decode. */
static __attribute__((noinline)) long decode_cold(struct codec *codec, struct reader in,
						  uint32_t lead, struct event *event,
						  struct codec_stack *stack)
{
	const uint8_t *begin = in.at - 1;
	uint32_t id, n_bytes;
	struct reader payload;
	uint64_t stamp;

	in.is_far = false;
	id = (uint32_t)read_bytes(&in, 1);
	n_bytes = (uint32_t)read_bytes(&in, 2);
	payload = (struct reader){.at = in.at, .end = in.at + n_bytes};
	if ((lead & 0xf0) || id < 8 || id >= EVENT_ID_END || n_bytes > CODEC_EVENT_MAX)
		return in.is_short ? 0 : -EPROTO;
	if (in.is_short || (size_t)(in.end - in.at) < n_bytes)
		return 0;
	in.at += n_bytes;
	stamp = read_stamp(codec, &in, lead);
	if (in.is_short)
		return 0;
	event->id = id;
	unpack(&payload, event);
	if (id == EVENT_STACK && unpack_stack(&payload, event, stack))
		return -EPROTO;
	if (id == EVENT_RESTART) {
		if (event->restart.base_stamp < codec->stamp)
			return -EPROTO;
		stamp = event->restart.base_stamp;
		torsh_codec_start(codec, stamp);
	}
	codec->stamp = event->stamp = stamp;
	return in.at - begin;
}

/* Returns the result of torsh_codec_decode. */
static __attribute__((noinline)) long decode_near(struct codec *codec, struct reader in,
						  struct event *event, struct codec_stack *stack)
{
	const uint8_t *begin = in.at;
	uint32_t lead = (uint32_t)read_bytes(&in, 1);
	long result;

	if (in.is_short)
		return 0;
	switch (lead & 3) {
	case CODEC_FREE:
		result = decode_free(codec, &in, lead, event);
		break;
	case CODEC_ALLOC:
		result = decode_alloc(codec, &in, lead, event, stack);
		break;
	case CODEC_COLD:
		return decode_cold(codec, in, lead, event, stack);
	default:
		return -EPROTO;
	}
	return result > 0 ? in.at - begin : result;
}

/* Functions of their own, because they need few registers. */
static __attribute__((noinline)) long decode_far_free(struct codec *codec, const uint8_t *bytes,
						      struct event *event)
{
	struct reader in = {.at = bytes + 1, .is_far = true};
	long result = decode_free(codec, &in, *bytes, event);

	return result > 0 ? in.at - bytes : result;
}

static __attribute__((noinline)) long decode_far_alloc(struct codec *codec, const uint8_t *bytes,
						       struct event *event,
						       struct codec_stack *stack)
{
	struct reader in = {.at = bytes + 1, .is_far = true};
	long result = decode_alloc(codec, &in, *bytes, event, stack);

	return result > 0 ? in.at - bytes : result;
}

long torsh_codec_decode(struct codec *codec, const uint8_t *bytes, size_t n_bytes,
			struct event *event, struct codec_stack *stack)
{
	stack->form = CODEC_STACK_SAME;
	stack->pop = stack->n = 0;
	stack->recent = CODEC_NOT_RECENT;
	stack->is_repeated = false;
	if (__builtin_expect(n_bytes >= FAR_BYTES, 1)) {
		if ((*bytes & 3) == CODEC_FREE)
			return decode_far_free(codec, bytes, event);
		if ((*bytes & 3) == CODEC_ALLOC)
			return decode_far_alloc(codec, bytes, event, stack);
	}
	return decode_near(codec, (struct reader){.at = bytes, .end = bytes + n_bytes}, event,
			   stack);
}

#define EVENT(id, NAME, name, text) enum { BYTES_OF_##NAME = 0
#define FIELD(type, name) +sizeof(torsh_wire_##type)
#define END(NAME)                                                      \
	}                                                              \
	;                                                              \
	_Static_assert((int)BYTES_OF_##NAME <= (int)CODEC_PAYLOAD_MAX, \
		       "there is room for its fields");
#include "agent/wire/events.def"
#undef EVENT
#undef FIELD
#undef END

uint32_t torsh_codec_pack(const struct event *event, uint8_t *out)
{
	switch (event->id) {
#define EVENT(id, NAME, name, text) \
	case EVENT_##NAME:          \
		return torsh_codec_fields_##name(&event->name, out);
#define FIELD(type, name)
#define END(NAME)
#include "agent/wire/events.def"
#undef EVENT
#undef FIELD
#undef END
	}
	return 0;
}

uint32_t torsh_codec_pack_stack(uint32_t pop, uint32_t n, const uint32_t *ids, uint8_t *out)
{
	memcpy(out, &pop, 4);
	memcpy(out + 4, &n, 4);
	return (uint32_t)(torsh_codec_put_ids(out + 8, ids, n) - out);
}
