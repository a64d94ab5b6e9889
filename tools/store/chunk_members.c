/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/store/chunk_members.h"

#include <stdbool.h>
#include <string.h>

#include "tools/base/containers/array.h"

#define TYPE_BITS 3 /* of a tag, below the field's number */
#define TYPE_MESSAGE 2u /* a length and as many bytes */

/* Returns the varint at *at and moves *at behind it, or to end if it has no end. */
static uint64_t take_varint(const uint8_t **at, const uint8_t *end)
{
	uint64_t value = 0;

	for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
		uint8_t byte = *(*at)++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
	*at = end;
	return 0;
}

/* A member with its tag, or what follows the last one. */
struct member {
	const uint8_t *begin, *message; /* the message ends where the next member begins */
	uint32_t bit; /* CHUNK_MEMBER; 0: another one, or no message */
};

/* Returns the member at *at, and moves behind it. */
static struct member take_member(const uint8_t **at, const uint8_t *end)
{
	struct member member = {.begin = *at};
	uint64_t tag = take_varint(at, end), n_bytes = take_varint(at, end);
	uint64_t field = tag >> TYPE_BITS;

	if ((tag & ((1u << TYPE_BITS) - 1)) != TYPE_MESSAGE || n_bytes > (uint64_t)(end - *at)) {
		*at = end;
		return member;
	}
	member.message = *at;
	member.bit = field < 32 ? UINT32_C(1) << field : 0;
	*at += n_bytes;
	return member;
}

size_t torsh_chunk_leave_out(uint8_t *packed, size_t n, uint32_t members)
{
	const uint8_t *at = packed, *end = packed + n;
	size_t n_kept = 0;

	while (at < end) {
		struct member member = take_member(&at, end);

		if (member.bit & members)
			continue;
		memmove(packed + n_kept, member.begin, (size_t)(at - member.begin));
		n_kept += (size_t)(at - member.begin);
	}
	return n_kept;
}

/* The fields of a member of CHUNK_PACKED_MEMBERS; StackTotals without estimates' variances. */
static struct packed_fields fields_of(uint32_t member)
{
	if (member == CHUNK_FIELD_STACKS)
		return (struct packed_fields){.numbers = 0x6, .columns = 0x38};
	return (struct packed_fields){.numbers = 0x2, .columns = 0x7fffc};
}

/* Returns false if the message isn't plain, or without memory. */
static bool add_message(struct packed_messages *messages, uint32_t member, const uint8_t *bytes,
			size_t n)
{
	struct packed_fields fields = fields_of(member);
	struct packed_message *message;

	if (messages->n == messages->n_room) {
		message = torsh_array_try_grow(messages->items, messages->n + 1, &messages->n_room,
					       sizeof(*message));
		if (!message)
			return false;
		messages->items = message;
	}
	message = &messages->items[messages->n++];
	*message = (struct packed_message){.member = member};
	return torsh_packed_message_open(message, &fields, bytes, n);
}

/* Whether n messages take too much for a chunk of so many bytes, as empty ones of few bytes do. */
static bool is_too_many(size_t n, size_t n_bytes)
{
	return n > PACKED_MESSAGES_ANYWAY + n_bytes / PACKED_MESSAGE_BYTES;
}

size_t torsh_chunk_split(const uint8_t *packed, size_t n, struct packed_messages *messages,
			 uint8_t *rest)
{
	const uint8_t *at = packed, *end = packed + n;
	size_t n_rest = 0;

	messages->n = 0;
	while (at < end) {
		struct member member = take_member(&at, end);

		if (!(member.bit & CHUNK_PACKED_MEMBERS)) {
			memcpy(rest + n_rest, member.begin, (size_t)(at - member.begin));
			n_rest += (size_t)(at - member.begin);
			continue;
		}
		if (is_too_many(messages->n, n) ||
		    !add_message(messages, (uint32_t)__builtin_ctz(member.bit), member.message,
				 (size_t)(at - member.message))) {
			messages->n = 0;
			return SIZE_MAX;
		}
	}
	return n_rest;
}
