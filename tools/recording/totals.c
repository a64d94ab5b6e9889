/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A row is its stack, the set of its fields that aren't 0, and their values: all numbers but the
 * stack as varints, variances as they are. A row that is replaced by a longer one leaves its bytes
 * unused.
 */
#include "tools/recording/totals.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

#define VARINT_BYTES 10u

/* By their bit in the set. Most rows have none of the rare ones, which come last. */
#define COMMON_FIELDS(NUMBER, SIGNED) \
	NUMBER(allocs)                \
	NUMBER(alloc_bytes)           \
	NUMBER(base_blocks)           \
	NUMBER(base_bytes)            \
	SIGNED(delta_blocks)          \
	SIGNED(delta_bytes)           \
	NUMBER(seen)
#define RARE_FIELDS(NUMBER, VARIANCE)   \
	NUMBER(temporary)               \
	NUMBER(temporary_bytes)         \
	NUMBER(operator)                \
	NUMBER(module)                  \
	NUMBER(first_step)              \
	NUMBER(last_step)               \
	NUMBER(base_first_step)         \
	NUMBER(base_last_step)          \
	VARIANCE(alloc_variance.blocks) \
	VARIANCE(alloc_variance.bytes)  \
	VARIANCE(base_variance.blocks)  \
	VARIANCE(base_variance.bytes)   \
	VARIANCE(live_variance.blocks)  \
	VARIANCE(live_variance.bytes)

static uint8_t *put_varint(uint8_t *out, uint64_t value)
{
	while (value >= 0x80) {
		*out++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*out++ = (uint8_t)value;
	return out;
}

static uint64_t take_varint(const uint8_t **in)
{
	uint64_t value = 0;
	unsigned shift = 0;

	if (**in < 0x80)
		return *(*in)++;
	do
		value |= (uint64_t)(**in & 0x7f) << shift;
	while (shift += 7, *(*in)++ & 0x80);
	return value;
}

static uint8_t *put_stack(uint8_t *out, uint32_t stack)
{
	memcpy(out, &stack, sizeof(stack));
	return out + sizeof(stack);
}

static uint32_t take_stack(const uint8_t **in)
{
	uint32_t stack;

	memcpy(&stack, *in, sizeof(stack));
	*in += sizeof(stack);
	return stack;
}

static uint64_t zigzag(int64_t value)
{
	return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

static int64_t unzigzag(uint64_t value)
{
	return (int64_t)(value >> 1 ^ -(value & 1));
}

/* Returns the length of the row in out. */
static size_t encode(uint8_t *out, const struct recorded_total *total)
{
	uint8_t *end = out;
	uint32_t set = 0, bit = 1;

#define IS_SET(field) set |= total->field != 0 ? bit : 0, bit <<= 1;
	COMMON_FIELDS(IS_SET, IS_SET)
	RARE_FIELDS(IS_SET, IS_SET)
#undef IS_SET
	end = put_stack(end, total->stack);
	end = put_varint(end, set);
#define PUT(value)                            \
	if (set & 1)                          \
		end = put_varint(end, value); \
	set >>= 1;
#define PUT_NUMBER(field) PUT(total->field)
#define PUT_SIGNED(field) PUT(zigzag(total->field))
#define PUT_VARIANCE(field)                                       \
	if (set & 1) {                                            \
		memcpy(end, &total->field, sizeof(total->field)); \
		end += sizeof(total->field);                      \
	}                                                         \
	set >>= 1;
	COMMON_FIELDS(PUT_NUMBER, PUT_SIGNED)
	if (!set)
		return (size_t)(end - out);
	RARE_FIELDS(PUT_NUMBER, PUT_VARIANCE)
#undef PUT
#undef PUT_NUMBER
#undef PUT_SIGNED
#undef PUT_VARIANCE
	return (size_t)(end - out);
}

/* Returns the end of the row. */
static const uint8_t *decode(const uint8_t *in, struct recorded_total *total)
{
	uint32_t set;

	*total = (struct recorded_total){.stack = take_stack(&in)};
	set = (uint32_t)take_varint(&in);
#define TAKE_NUMBER(field)                                                 \
	if (set & 1)                                                       \
		total->field = (__typeof__(total->field))take_varint(&in); \
	set >>= 1;
#define TAKE_SIGNED(field)                                 \
	if (set & 1)                                       \
		total->field = unzigzag(take_varint(&in)); \
	set >>= 1;
#define TAKE_VARIANCE(field)                                     \
	if (set & 1) {                                           \
		memcpy(&total->field, in, sizeof(total->field)); \
		in += sizeof(total->field);                      \
	}                                                        \
	set >>= 1;
	COMMON_FIELDS(TAKE_NUMBER, TAKE_SIGNED)
	if (!set)
		return in;
	RARE_FIELDS(TAKE_NUMBER, TAKE_VARIANCE)
#undef TAKE_NUMBER
#undef TAKE_SIGNED
#undef TAKE_VARIANCE
	return in;
}

bool torsh_totals_has(const struct recorded_totals *totals, uint32_t stack)
{
	return torsh_row_index_find(&totals->row_of, stack) != ROW_INDEX_NONE;
}

struct recorded_total torsh_totals_at(const struct recorded_totals *totals, size_t i)
{
	struct recorded_total total;

	decode(totals->bytes + totals->offsets[i], &total);
	return total;
}

/* The fields' bits in the set. */
enum field_bit {
#define BIT(field) field##_bit,
#define NO_BIT(field)
	COMMON_FIELDS(BIT, BIT) RARE_FIELDS(BIT, NO_BIT)
#undef BIT
#undef NO_BIT
};

bool torsh_totals_has_part(const struct recorded_totals *totals, size_t i, enum total_part part)
{
	const uint8_t *in = totals->bytes + totals->offsets[i];

	take_stack(&in);
	return take_varint(&in) >> (part == TOTAL_STEPS ? last_step_bit : temporary_bit) & 1;
}

struct allocation_count torsh_totals_count(const struct recorded_totals *totals, size_t i)
{
	const uint8_t *in = totals->bytes + totals->offsets[i];
	struct allocation_count count = {.stack = take_stack(&in)};

	/* The first field. */
	if (take_varint(&in) & 1)
		count.allocs = take_varint(&in);
	return count;
}

bool torsh_totals_find(const struct recorded_totals *totals, uint32_t stack,
		       struct recorded_total *total)
{
	uint32_t row = torsh_row_index_find(&totals->row_of, stack);

	if (row == ROW_INDEX_NONE) {
		*total = (struct recorded_total){.stack = stack};
		return false;
	}
	*total = torsh_totals_at(totals, row);
	return true;
}

/* Returns the number of the row, which is made if it is new, and has room for n_bytes. */
static size_t reserve(struct recorded_totals *totals, uint32_t stack, uint32_t row, size_t n_bytes)
{
	struct recorded_total old;

	if (row != ROW_INDEX_NONE) {
		const uint8_t *start = totals->bytes + totals->offsets[row];

		if ((size_t)(decode(start, &old) - start) >= n_bytes)
			return row;
	} else {
		totals->offsets =
			torsh_array_reserve(totals->offsets, totals->n, &totals->offsets_room,
					    sizeof(*totals->offsets));
		row = (uint32_t)totals->n++;
		torsh_row_index_add(&totals->row_of, stack, row);
	}
	if (totals->n_bytes + TOTAL_ROW_BYTES > totals->bytes_room) {
		totals->bytes_room += totals->bytes_room / 4 + 64 * TOTAL_ROW_BYTES;
		totals->bytes = torsh_need(realloc(totals->bytes, totals->bytes_room));
	}
	totals->offsets[row] = (uint32_t)totals->n_bytes;
	totals->n_bytes += n_bytes;
	return row;
}

bool torsh_totals_put_packed(struct recorded_totals *totals, const struct packed_total *total)
{
	size_t i;

	if (totals->n_bytes > UINT32_MAX - TOTAL_ROW_BYTES)
		return false;
	i = reserve(totals, total->stack, total->row, total->n_bytes);
	memcpy(totals->bytes + totals->offsets[i], total->bytes, total->n_bytes);
	return true;
}

bool torsh_totals_put(struct recorded_totals *totals, const struct recorded_total *total)
{
	struct packed_total packed = {
		.stack = total->stack,
		.row = torsh_row_index_find(&totals->row_of, total->stack),
	};

	packed.n_bytes = encode(packed.bytes, total);
	return torsh_totals_put_packed(totals, &packed);
}

/* Copy the next varint of a column that has one, unless it is 0. */
static uint8_t *copy_varint(uint8_t *out, struct packed_column *column)
{
	const uint8_t *at = column->at;
	uint8_t byte = *at++;

	*out = byte;
	out += byte != 0;
	/* A number that is too long to be one is cut. */
	for (size_t n = 1; byte >= 0x80; n++) {
		byte = *at++;
		if (n < VARINT_BYTES)
			*out++ = byte;
		else
			out[-1] &= 0x7f;
	}
	column->at = at;
	column->n--;
	return out;
}

void torsh_totals_pack(struct packed_total *total, struct packed_column *columns, uint32_t present)
{
	uint8_t *out = put_stack(total->bytes, total->stack);
	uint32_t set = 0;

	/* The columns are in the order of the fields' bits. */
	for (uint32_t left = present; left; left &= left - 1) {
		const struct packed_column *column = &columns[__builtin_ctz(left)];

		set |= column->n && *column->at ? left & -left : 0;
	}
	out = put_varint(out, set);
	for (uint32_t left = present; left; left &= left - 1) {
		struct packed_column *column = &columns[__builtin_ctz(left)];

		if (column->n)
			out = copy_varint(out, column);
	}
	total->n_bytes = (size_t)(out - total->bytes);
}

void torsh_totals_free(struct recorded_totals *totals)
{
	free(totals->offsets);
	free(totals->bytes);
	torsh_row_index_destroy(&totals->row_of);
	*totals = (struct recorded_totals){0};
}
