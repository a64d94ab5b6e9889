/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A bucket of live_table.h: two cache lines with seven blocks. Its first word has a tag per slot,
 * which are compared all at once, and the number of blocks that belong there or before but are in a
 * later bucket. Zeroed memory is empty buckets.
 *
 * A tag and its slot, from the lowest bit:
 *
 *	tag		7 bits of the address, from bit 4 on; 1: the slot is used
 *	bytes 0-7	key, 38 bits: bit 3 of the address, then the bits from 11 on; site, 24 bits;
 *			the stamp's upper 2 bits
 *	bytes 8-15	the stamp's lower 48 bits; size, 16 bits
 *	byte 16		what is usable beyond the size when that is rounded up to a multiple of 8,
 *			in units of 8 bytes; or an enum live_rest
 */
#ifndef TORSH_BASE_CONTAINERS_LIVE_BUCKET_H
#define TORSH_BASE_CONTAINERS_LIVE_BUCKET_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "tools/base/containers/live_table.h"

#define BUCKET_SLOTS 7u
#define SLOT_BYTES 17u
#define KEY_BITS 38u
#define ADDRESS_BITS 48u
#define SITE_BITS 24u
#define STAMP_BITS 50u
#define STAMP_LOW_BITS 48u
#define SIZE_BITS 16u
#define TAG_USED 0x80u
#define TAGS_USED UINT64_C(0x0080808080808080)
#define TAGS_LOW UINT64_C(0x0001010101010101)
#define PAST_SHIFT 56u
#define PAST_ONE (UINT64_C(1) << PAST_SHIFT)
#define PAST_MAX 255u /* the largest number, which then stays until the page grows */

enum live_rest {
	REST_SIZE = 253, /* the usable size is the size */
	REST_UNKNOWN,
	REST_WIDE, /* the slot has only the key, the table's map has the block */
};

struct live_bucket {
	uint64_t tags; /* byte i: tag of slot i; byte 7: the number of blocks past it */
	uint8_t slots[BUCKET_SLOTS][SLOT_BYTES];
	/*
	 * A bit for each of the blocks past it, by torsh_slot_mark: of those that are removed,
	 * until none is left
	 */
	uint8_t passed;
};

_Static_assert(sizeof(struct live_bucket) == 128, "a bucket is two cache lines");

static inline uint64_t torsh_bucket_mask(uint32_t n_bits)
{
	return (UINT64_C(1) << n_bits) - 1;
}

static inline uint64_t torsh_slot_word(const uint8_t *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

/* Returns true if a tag and a key can hold the address. */
static inline bool torsh_slot_fits(uint64_t address)
{
	return !(address & (7 | ~torsh_bucket_mask(ADDRESS_BITS)));
}

static inline uint64_t torsh_slot_tag(uint64_t address)
{
	return (address >> 4 & 0x7f) | TAG_USED;
}

static inline uint64_t torsh_slot_key_of(uint64_t address)
{
	return (address >> 11) << 1 | (address >> 3 & 1);
}

static inline uint64_t torsh_slot_key(const uint8_t *slot)
{
	return torsh_slot_word(slot) & torsh_bucket_mask(KEY_BITS);
}

static inline uint64_t torsh_bucket_past(const struct live_bucket *bucket)
{
	return bucket->tags >> PAST_SHIFT;
}

/* Returns the bit of an address in live_bucket.passed. */
static inline uint32_t torsh_slot_mark(uint64_t address)
{
	return 1u << (address >> 4 & 7);
}

/* A block with that address is put into a later bucket. */
static inline void torsh_bucket_pass(struct live_bucket *bucket, uint64_t address)
{
	bucket->passed |= (uint8_t)torsh_slot_mark(address);
	bucket->tags += torsh_bucket_past(bucket) < PAST_MAX ? PAST_ONE : 0;
}

static inline void torsh_bucket_unpass(struct live_bucket *bucket)
{
	bucket->tags -= torsh_bucket_past(bucket) < PAST_MAX ? PAST_ONE : 0;
	if (!torsh_bucket_past(bucket))
		bucket->passed = 0;
}

/* Bit 7 of each byte that equals the tag. No byte carries into the next. */
static inline uint64_t torsh_bucket_matches(const struct live_bucket *bucket, uint64_t tag)
{
	uint64_t differences = bucket->tags ^ tag * TAGS_LOW, rest = TAGS_USED - TAGS_LOW;

	return ~(((differences & rest) + rest) | differences) & TAGS_USED;
}

/* Bit 7 of each byte of an empty slot. */
static inline uint64_t torsh_bucket_empty(const struct live_bucket *bucket)
{
	return ~bucket->tags & TAGS_USED;
}

/* The number of the slot of the lowest set bit. */
static inline uint32_t torsh_bucket_first(uint64_t bits)
{
	return (uint32_t)__builtin_ctzll(bits) / 8;
}

static inline bool torsh_bucket_has(const struct live_bucket *bucket, uint32_t i)
{
	return bucket->tags >> (8 * i) & TAG_USED;
}

static inline void torsh_bucket_clear(struct live_bucket *bucket, uint32_t i)
{
	bucket->tags &= ~(UINT64_C(0xff) << (8 * i));
}

static inline uint64_t torsh_bucket_address(const struct live_bucket *bucket, uint32_t i)
{
	uint64_t key = torsh_slot_key(bucket->slots[i]);

	return (key >> 1) << 11 | (bucket->tags >> (8 * i) & 0x7f) << 4 | (key & 1) << 3;
}

/* Copy a slot to an empty one. */
static inline void torsh_bucket_copy(struct live_bucket *to, uint32_t k,
				     const struct live_bucket *from, uint32_t i)
{
	memcpy(to->slots[k], from->slots[i], SLOT_BYTES);
	to->tags |= (from->tags >> (8 * i) & 0xff) << (8 * k);
}

/* Returns the last byte of the block's slot. */
static inline uint64_t torsh_slot_rest(const struct live_block *block)
{
	uint64_t excess = (block->usable - ((block->size + 7) & ~UINT64_C(7))) / 8;

	if (__builtin_expect((block->size >> SIZE_BITS | block->site >> SITE_BITS |
			      block->stamp >> STAMP_BITS | block->owner) != 0,
			     0))
		return REST_WIDE;
	if (__builtin_expect(!(block->usable & 7) && excess < REST_SIZE && block->usable, 1))
		return excess;
	if (!block->usable)
		return REST_UNKNOWN;
	return block->usable == block->size ? REST_SIZE : REST_WIDE;
}

/* Fill a slot that is empty or has a block with the same address. */
static inline void torsh_bucket_set(struct live_bucket *bucket, uint32_t i,
				    const struct live_block *block, uint64_t rest)
{
	uint8_t *slot = bucket->slots[i];
	uint64_t low = torsh_slot_key_of(block->address) | (uint64_t)block->site << KEY_BITS |
		       block->stamp >> STAMP_LOW_BITS << (KEY_BITS + SITE_BITS),
		 high = (block->stamp & torsh_bucket_mask(STAMP_LOW_BITS)) |
			block->size << STAMP_LOW_BITS;

	if (__builtin_expect(rest == REST_WIDE, 0))
		low &= torsh_bucket_mask(KEY_BITS);
	bucket->tags |= torsh_slot_tag(block->address) << (8 * i);
	memcpy(slot, &low, sizeof(low));
	memcpy(slot + 8, &high, sizeof(high));
	slot[16] = (uint8_t)rest;
}

/* Set the fields of a block, except its address. Returns false if it is wide: none is set then. */
static inline bool torsh_slot_get(const uint8_t *slot, struct live_block *block)
{
	uint64_t low = torsh_slot_word(slot), high = torsh_slot_word(slot + 8), rest = slot[16];
	uint64_t size = high >> STAMP_LOW_BITS;

	if (__builtin_expect(rest == REST_WIDE, 0))
		return false;
	block->size = size;
	block->site = (uint32_t)(low >> KEY_BITS & torsh_bucket_mask(SITE_BITS));
	block->stamp = (high & torsh_bucket_mask(STAMP_LOW_BITS)) |
		       low >> (KEY_BITS + SITE_BITS) << STAMP_LOW_BITS;
	block->usable = __builtin_expect(rest < REST_SIZE, 1)
				? ((size + 7) & ~UINT64_C(7)) + 8 * rest
			: rest == REST_SIZE ? size
					    : 0;
	block->owner = 0;
	return true;
}

#endif
