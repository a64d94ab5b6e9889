/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Members of a packed Chunk of recording.proto that a reader does not unpack. */
#ifndef TORSH_STORE_CHUNK_MEMBERS_H
#define TORSH_STORE_CHUNK_MEMBERS_H

#include <stddef.h>
#include <stdint.h>

#include "recording.pb-c.h"
#include "tools/store/packed_columns.h"

/* Bit of a member: CHUNK_MEMBER(STACKS). Numbers of Chunk's fields are below 32. */
#define CHUNK_MEMBER(NAME) (UINT32_C(1) << CHUNK_FIELD_##NAME)

/* The numbers in recording.proto of members that may be left out. */
enum chunk_field {
	CHUNK_FIELD_STACKS = 6,
	CHUNK_FIELD_STACK_TOTALS = 7,
	CHUNK_FIELD_LIVE = 9,
	CHUNK_FIELD_JOINT = 16,
	CHUNK_FIELD_GROWTH = 18,
	CHUNK_FIELD_MOMENTS = 22,
	CHUNK_FIELD_WINDOW_PEAK = 23,
	CHUNK_FIELD_VERDICTS = 25,
};

/*
 * Remove these members (CHUNK_MEMBER, ored) from the n bytes of a packed Chunk. Returns the number
 * of bytes left. What follows a member that is no message stays.
 */
size_t torsh_chunk_leave_out(uint8_t *packed, size_t n, uint32_t members);

/* The members that may stay packed, and others. */
#define CHUNK_PACKED_MEMBERS (CHUNK_MEMBER(STACKS) | CHUNK_MEMBER(STACK_TOTALS))

/* A chunk that has more of them, or shorter ones on average, is unpacked whole. */
#define PACKED_MESSAGES_ANYWAY 2048u
#define PACKED_MESSAGE_BYTES 32u

/* Messages of a packed Chunk, in its order: growing, and used again by the next one. */
struct packed_messages {
	struct packed_message *items;
	size_t n, n_room;
};

/*
 * Find those of CHUNK_PACKED_MEMBERS in the n bytes of a packed Chunk, and copy the rest of it to
 * `rest`, which has room for n. Returns the number of bytes copied, or SIZE_MAX if not all is
 * plain, if they are too many, or without memory: then nothing stays packed.
 */
size_t torsh_chunk_split(const uint8_t *packed, size_t n, struct packed_messages *messages,
			 uint8_t *rest);

#endif
