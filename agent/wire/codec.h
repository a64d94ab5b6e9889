/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The bytes of an event on a ring. Encoder and decoder keep the same small state, one per ring and
 * direction: the last stamp and address, a table of recent addresses and one of recent stack
 * changes. So a typical event is 3 to 7 bytes.
 *
 * Lead byte, all events:
 *	bits 0-1  kind: 1 free or realloc_begin, 2 alloc, 3 cold; 0 is never written
 *	bits 2-3  n: the stamp's difference to the ring's previous event takes 1 << n bytes
 *	bits 4-6  address: 0 one byte, index into the recent addresses; 1-5 zig-zag difference of
 *		  (address >> 4) in 1, 2, 3, 4, 6 bytes; 7 eight bytes, unchanged (no multiple of
 *		  16, or too far away). Cold: 0
 *	bit 7	  free: it is a realloc_begin. alloc: the usable size follows (otherwise glibc's
 *		  formula gives it)
 * Second byte, alloc:
 *	bits 0-1  n: the size takes 1 << n bytes
 *	bits 2-3  stack: enum codec_stack_form
 *	bits 4-6  enum alloc_entry
 *	bit 7	  the usable size takes 8 bytes (otherwise 2, as its excess over the size)
 * Then in this order: address, size, usable size, stack, stamp. All numbers are little endian.
 *
 * Cold: lead, id, u16 length of the payload, payload (fields as in events.def, packed; for STACK
 * the ids), stamp.
 *
 * The stamp is last so that nothing waits for it: reading the time stamp counter takes as long as
 * all the rest, but overlaps with it.
 *
 * The encoder writes whole 8-byte words and advances by less: CODEC_EVENT_MAX includes that slack.
 */
#ifndef TORSH_AGENT_WIRE_CODEC_H
#define TORSH_AGENT_WIRE_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "agent/wire/event.h"

#define CODEC_EVENT_MAX 1024u
#define CODEC_INLINE_IDS 32u /* more pushed frames than this go into STACK events of their own */
#define CODEC_STACK_IDS 256u /* most ids in one STACK event */
#define CODEC_POP_ALL UINT32_MAX
#define CODEC_COLD_HEAD 4u /* bytes before a cold event's payload */
#define CODEC_PAYLOAD_MAX 96u /* of an event that is not STACK */

enum codec_kind { CODEC_FREE = 1, CODEC_ALLOC = 2, CODEC_COLD = 3 };

enum codec_stack_form {
	CODEC_STACK_SAME, /* as at the thread's previous event with a stack */
	CODEC_STACK_RECENT, /* one byte: index into the recent changes */
	/* u8 pop, u8 n, n ids of 3 bytes; n <= CODEC_CHANGE_IDS enters the recent changes */
	CODEC_STACK_GIVEN,
	CODEC_STACK_NONE, /* stacks are not recorded */
};

#define CODEC_CHANGE_IDS 7u

/*
 * A small change of the stack, in four words that are hashed and compared as such: pop in bits 0-15
 * of the first, the number of pushed ids in bits 16-31, then the ids (outermost first), 32 bits
 * each. Unused ids are 0.
 */
struct codec_change {
	uint64_t words[4];
};

#define CODEC_RECENT 256u
#define CODEC_NOT_RECENT UINT32_MAX

struct codec {
	uint64_t stamp;
	uint64_t unit; /* last address >> 4 */
	uint64_t addresses[CODEC_RECENT];
	struct codec_change changes[CODEC_RECENT];
};

/* The stack of an event, besides struct event. */
struct codec_stack {
	enum codec_stack_form form; /* SAME, NONE, or GIVEN for both encodings of a change */
	uint32_t pop; /* CODEC_POP_ALL: everything */
	uint32_t n;
	uint32_t recent; /* the index of the change among the recent ones; CODEC_NOT_RECENT */
	bool is_repeated; /* the entry was equal before */
	uint32_t ids[CODEC_STACK_IDS];
};

static inline void torsh_codec_start(struct codec *codec, uint64_t base_stamp)
{
	memset(codec, 0, sizeof(*codec));
	codec->stamp = base_stamp;
}

static inline uint32_t torsh_codec_address_slot(uint64_t unit)
{
	return (uint32_t)((unit * 0x9e3779b97f4a7c15u) >> 56);
}

static inline uint32_t torsh_codec_change_slot(const struct codec_change *change)
{
	const uint64_t *w = change->words;
	uint64_t h = w[0] * 0x9e3779b97f4a7c15u ^ w[1] * 0xc2b2ae3d27d4eb4fu;

	h ^= w[2] * 0x165667b19e3779f9u ^ w[3] * 0x27d4eb2f165667c5u;
	return (uint32_t)((h ^ h >> 29) * 0x9e3779b97f4a7c15u >> 56);
}

/* CODEC_CHANGE_IDS of the ids can be read, the first n count. No branch: n is hard to predict. */
static inline struct codec_change torsh_codec_change(uint32_t pop, uint32_t n, const uint32_t *ids)
{
	static const uint64_t used[CODEC_CHANGE_IDS + 1][4] = {
#define ONE UINT64_C(0xffffffff)
#define TWO (~UINT64_C(0))
		{ONE},		 {TWO},		  {TWO, ONE},		{TWO, TWO},
		{TWO, TWO, ONE}, {TWO, TWO, TWO}, {TWO, TWO, TWO, ONE}, {TWO, TWO, TWO, TWO},
#undef ONE
#undef TWO
	};
	const uint64_t *mask = used[n];

	return (struct codec_change){{
		(pop | n << 16 | (uint64_t)ids[0] << 32) & mask[0],
		(ids[1] | (uint64_t)ids[2] << 32) & mask[1],
		(ids[3] | (uint64_t)ids[4] << 32) & mask[2],
		(ids[5] | (uint64_t)ids[6] << 32) & mask[3],
	}};
}

static inline bool torsh_codec_is_same_change(const struct codec_change *a,
					      const struct codec_change *b)
{
	return ((a->words[0] ^ b->words[0]) | (a->words[1] ^ b->words[1]) |
		(a->words[2] ^ b->words[2]) | (a->words[3] ^ b->words[3])) == 0;
}

/* glibc's malloc_usable_size for a block in the heap; any other usable size is sent. */
static inline uint64_t torsh_codec_expected_usable(uint64_t size)
{
	return size < 24 ? 24 : ((size + 23) & ~UINT64_C(15)) - 8;
}

static inline uint8_t *torsh_codec_put(uint8_t *at, uint64_t value, uint32_t n_bytes)
{
	memcpy(at, &value, 8);
	return at + n_bytes;
}

/* 0, 1, 2, 3 for values that take 1, 2, 4, 8 bytes. */
static inline uint32_t torsh_codec_width(uint64_t value)
{
	return (value > 0xff) + (value > 0xffff) + (value > 0xffffffffu);
}

static inline uint8_t *torsh_codec_put_stamp(struct codec *codec, uint8_t *at, uint64_t stamp,
					     uint32_t *lead)
{
	uint64_t difference = stamp - codec->stamp;
	uint32_t width = torsh_codec_width(difference);

	codec->stamp = stamp;
	*lead |= width << 2;
	return torsh_codec_put(at, difference, 1u << width);
}

static inline uint8_t *torsh_codec_put_address(struct codec *codec, uint8_t *at, uint64_t address,
					       uint32_t *lead)
{
	static const uint8_t bytes[] = {1, 1, 2, 3, 4, 6};
	uint64_t unit = address >> 4;
	uint32_t slot = torsh_codec_address_slot(unit);
	int64_t difference = (int64_t)(unit - codec->unit);
	uint64_t zigzag = (uint64_t)difference << 1 ^ (uint64_t)(difference >> 63);
	uint32_t code = 1u + (zigzag > 0xff) + (zigzag > 0xffff) + (zigzag > 0xffffff) +
			(zigzag > 0xffffffffu);

	codec->unit = unit;
	if (codec->addresses[slot] == address) {
		*at = (uint8_t)slot;
		return at + 1;
	}
	codec->addresses[slot] = address;
	/*
	 * Six bytes hold any difference of addresses below 2^51; kernels return higher ones only on
	 * request.
	 */
	if ((address & 15) | zigzag >> 48) {
		*lead |= 7u << 4;
		return torsh_codec_put(at, address, 8);
	}
	*lead |= code << 4;
	return torsh_codec_put(at, zigzag, bytes[code]);
}

/* A free, or a realloc_begin. Returns the end of what was written at `at`. */
static inline uint8_t *torsh_codec_put_free(struct codec *codec, uint8_t *at, uint64_t stamp,
					    uint64_t address, bool is_realloc)
{
	uint8_t *lead_at = at++;
	uint32_t lead = CODEC_FREE | is_realloc << 7;

	at = torsh_codec_put_address(codec, at, address, &lead);
	at = torsh_codec_put_stamp(codec, at, stamp, &lead);
	*lead_at = (uint8_t)lead;
	return at;
}

static inline uint8_t *torsh_codec_put_ids(uint8_t *at, const uint32_t *ids, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++, at += 3)
		memcpy(at, &ids[i], 4);
	return at;
}

/*
 * n <= CODEC_INLINE_IDS and pop <= 255: larger changes are sent as STACK events before. At least
 * CODEC_CHANGE_IDS ids can be read even if n is less.
 */
static inline uint8_t *torsh_codec_put_stack(struct codec *codec, uint8_t *at, uint32_t pop,
					     uint32_t n, const uint32_t *ids, uint32_t *second)
{
	if (!(pop | n))
		return at;
	if (n <= CODEC_CHANGE_IDS) {
		struct codec_change change = torsh_codec_change(pop, n, ids);
		uint32_t slot = torsh_codec_change_slot(&change);

		if (torsh_codec_is_same_change(&codec->changes[slot], &change)) {
			*second |= CODEC_STACK_RECENT << 2;
			*at = (uint8_t)slot;
			return at + 1;
		}
		codec->changes[slot] = change;
	}
	*second |= CODEC_STACK_GIVEN << 2;
	*at++ = (uint8_t)pop;
	*at++ = (uint8_t)n;
	return torsh_codec_put_ids(at, ids, n);
}

/* entry is an enum alloc_entry; has_stack 0: stacks are not recorded. */
static inline uint8_t *torsh_codec_put_alloc(struct codec *codec, uint8_t *at, uint64_t stamp,
					     const struct event_alloc *alloc, bool has_stack,
					     uint32_t pop, uint32_t n, const uint32_t *ids)
{
	uint8_t *lead_at = at;
	uint32_t lead = CODEC_ALLOC, width = torsh_codec_width(alloc->size);
	uint32_t second = width | alloc->entry << 4;

	at += 2;
	at = torsh_codec_put_address(codec, at, alloc->address, &lead);
	at = torsh_codec_put(at, alloc->size, 1u << width);
	if (__builtin_expect(alloc->usable != torsh_codec_expected_usable(alloc->size), 0)) {
		uint64_t excess = alloc->usable - alloc->size;

		lead |= 0x80;
		if (excess > 0xffff) {
			second |= 0x80;
			at = torsh_codec_put(at, alloc->usable, 8);
		} else {
			at = torsh_codec_put(at, excess, 2);
		}
	}
	if (has_stack)
		at = torsh_codec_put_stack(codec, at, pop, n, ids, &second);
	else
		second |= CODEC_STACK_NONE << 2;
	at = torsh_codec_put_stamp(codec, at, stamp, &lead);
	lead_at[0] = (uint8_t)lead;
	lead_at[1] = (uint8_t)second;
	return at;
}

/*
 * Write a cold event: id and a payload of at most CODEC_EVENT_MAX - 32 bytes. The payload is the
 * event's fields in wire order, which torsh_codec_pack writes for the structs of event.h; it is
 * already at at + CODEC_COLD_HEAD.
 */
static inline uint8_t *torsh_codec_end_cold(struct codec *codec, uint8_t *at, uint64_t stamp,
					    uint32_t id, uint32_t n_bytes)
{
	uint8_t *lead_at = at;
	uint32_t lead = CODEC_COLD;

	at = torsh_codec_put_stamp(codec, at + CODEC_COLD_HEAD + n_bytes, stamp, &lead);
	lead_at[0] = (uint8_t)lead;
	lead_at[1] = (uint8_t)id;
	lead_at[2] = (uint8_t)n_bytes;
	lead_at[3] = (uint8_t)(n_bytes >> 8);
	return at;
}

/* The same for a payload elsewhere in memory. */
static inline uint8_t *torsh_codec_put_cold(struct codec *codec, uint8_t *at, uint64_t stamp,
					    uint32_t id, const void *payload, uint32_t n_bytes)
{
	memcpy(at + CODEC_COLD_HEAD, payload, n_bytes);
	return torsh_codec_end_cold(codec, at, stamp, id, n_bytes);
}

/*
 * torsh_codec_fields_NAME: write the payload of one kind of event; returns its length. out has at
 * least CODEC_PAYLOAD_MAX bytes.
 */
#define EVENT(id, NAME, name, text)                                                    \
	static inline uint32_t torsh_codec_fields_##name(const struct event_##name *e, \
							 uint8_t *out)                 \
	{                                                                              \
		uint8_t *at = out;
#define FIELD(type, name)                      \
	memcpy(at, &e->name, sizeof(e->name)); \
	at += sizeof(e->name);
#define END(NAME)                    \
	return (uint32_t)(at - out); \
	}
#include "agent/wire/events.def"
#undef EVENT
#undef FIELD
#undef END

/* The same for any event but STACK, by its id. */
uint32_t torsh_codec_pack(const struct event *event, uint8_t *out);

/*
 * Write the payload of a STACK event; n <= CODEC_STACK_IDS, out has 8 + 3 * n + 1 bytes. Returns
 * its length.
 */
uint32_t torsh_codec_pack_stack(uint32_t pop, uint32_t n, const uint32_t *ids, uint8_t *out);

/*
 * Decode the event that begins at bytes; the memory must not change meanwhile (copy it out of the
 * ring first). Fills *event; *stack is the change of the thread's stack: GIVEN for an alloc or
 * STACK event that changes it, NONE for an alloc without stack, otherwise SAME. An event with an id
 * that this version doesn't support is skipped: only event->id is set.
 *
 * Returns the bytes it took, 0 if n_bytes ends within it, or -EPROTO: no encoder writes this.
 */
long torsh_codec_decode(struct codec *codec, const uint8_t *bytes, size_t n_bytes,
			struct event *event, struct codec_stack *stack);

#endif
