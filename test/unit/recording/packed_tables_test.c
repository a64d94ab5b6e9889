/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Stacks and totals are the same, loaded packed or unpacked; what is not plain is not taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tools/recording/recording.h"
#include "tools/store/chunk_members.h"
#include "tools/store/delta.h"

#define N 2000u
#define ROOM (1u << 20)

/* Columns of one table, which a chunk's message points to. */
struct columns {
	uint32_t small[12][N];
	uint64_t large[6][N];
	int64_t deltas[2][N];
	double variances[N];
	Torsh__Stacks stacks, *stack_rows;
	Torsh__StackTotals totals, *total_rows;
	Torsh__Chunk chunk;
};

/* Of all lengths that a varint may have, and none. */
static uint64_t value_of(uint32_t column, uint32_t i)
{
	uint64_t mixed = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);

	mixed ^= column * UINT64_C(0xbf58476d1ce4e5b9);
	return mixed % 3 ? mixed >> (mixed % 64) : 0;
}

static void fill(struct columns *columns, bool has_steps)
{
	for (uint32_t i = 0; i < N; i++) {
		for (uint32_t k = 0; k < 12; k++)
			columns->small[k][i] = (uint32_t)value_of(k, i);
		for (uint32_t k = 0; k < 6; k++)
			columns->large[k][i] = k == 2 ? 0 : value_of(20 + k, i);
		for (uint32_t k = 0; k < 2; k++)
			columns->deltas[k][i] = (int64_t)value_of(30 + k, i);
		columns->variances[i] = i;
		columns->small[0][i] = i % 7 ? i : 0; /* parents, of stacks from 1 on */
		columns->small[1][i] %= 5000;
		columns->small[2][i] = 1 + (i * 3) % (N - 50); /* stacks of totals: some twice */
	}
	torsh__stacks__init(&columns->stacks);
	torsh__stack_totals__init(&columns->totals);
	torsh__chunk__init(&columns->chunk);
	columns->stacks.has_process = columns->stacks.has_first = columns->totals.has_process = 1;
	columns->stacks.process = columns->totals.process = 3;
	columns->stacks.first = 1;
#define COLUMN(table, name, values) (columns->table.name = (values), columns->table.n_##name = N)
	COLUMN(stacks, parent, columns->small[0]);
	COLUMN(stacks, address, columns->small[1]);
	COLUMN(totals, stack, columns->small[2]);
	COLUMN(totals, seen, columns->small[3]);
	COLUMN(totals, allocs, columns->large[0]);
	COLUMN(totals, alloc_bytes, columns->large[1]);
	COLUMN(totals, temporary, columns->large[2]);
	COLUMN(totals, temporary_bytes, columns->large[3]);
	COLUMN(totals, base_blocks, columns->large[4]);
	COLUMN(totals, base_bytes, columns->large[5]);
	COLUMN(totals, delta_blocks, columns->deltas[0]);
	COLUMN(totals, delta_bytes, columns->deltas[1]);
	if (has_steps) {
		COLUMN(totals, in_operator, columns->small[4]);
		COLUMN(totals, step_of_first, columns->small[5]);
		COLUMN(totals, base_step_of_last, columns->small[6]);
		columns->totals.n_step_of_first = N / 2; /* the rest has none */
	}
#undef COLUMN
	columns->stack_rows = &columns->stacks;
	columns->total_rows = &columns->totals;
	columns->chunk.n_stacks = columns->chunk.n_stack_totals = 1;
	columns->chunk.stacks = &columns->stack_rows;
	columns->chunk.stack_totals = &columns->total_rows;
}

static size_t pack(struct columns *columns, uint8_t *out)
{
	torsh_delta_encode(&columns->chunk);
	assert_true(torsh__chunk__get_packed_size(&columns->chunk) < ROOM);
	return torsh__chunk__pack(&columns->chunk, out);
}

static struct recording *load_unpacked(const uint8_t *bytes, size_t n)
{
	struct recording *recording = torsh_recording_new("a");
	Torsh__Chunk *chunk = torsh__chunk__unpack(NULL, n, bytes);

	assert_non_null(chunk);
	torsh_delta_decode(chunk);
	recording->size_bytes = n;
	assert_int_equal(torsh_recording_load(recording, chunk), 0);
	torsh__chunk__free_unpacked(chunk, NULL);
	return recording;
}

static struct recording *load_packed(const uint8_t *bytes, size_t n)
{
	struct recording *recording = torsh_recording_new("a");
	struct packed_messages messages = {0};
	uint8_t *rest = malloc(n);
	size_t n_rest = torsh_chunk_split(bytes, n, &messages, rest);
	Torsh__Chunk *chunk;

	assert_int_not_equal(n_rest, SIZE_MAX);
	assert_int_equal(messages.n, 2);
	chunk = torsh__chunk__unpack(NULL, n_rest, rest);
	assert_int_equal(chunk->n_stacks + chunk->n_stack_totals, 0);
	recording->size_bytes = n;
	assert_int_equal(torsh_recording_load_packed(recording, chunk, &messages), 0);
	torsh__chunk__free_unpacked(chunk, NULL);
	free(messages.items);
	free(rest);
	return recording;
}

static void assert_equal_loads(struct columns *columns)
{
	static uint8_t bytes[ROOM];
	size_t n = pack(columns, bytes);
	struct recording *one = load_unpacked(bytes, n), *other = load_packed(bytes, n);
	const struct recorded_process *a = torsh_recording_process(one, 3),
				      *b = torsh_recording_process(other, 3);

	assert_int_equal(one->n_bad_rows, other->n_bad_rows);
	assert_int_equal(a->tables->n_stacks, b->tables->n_stacks);
	assert_memory_equal(a->tables->stacks, b->tables->stacks,
			    a->tables->n_stacks * sizeof(*a->tables->stacks));
	assert_int_equal(a->totals.n, b->totals.n);
	for (size_t i = 0; i < a->totals.n; i++) {
		struct recorded_total x = torsh_totals_at(&a->totals, i),
				      y = torsh_totals_at(&b->totals, i);

		assert_memory_equal(&x, &y, sizeof(x));
	}
	torsh_recording_destroy(one);
	torsh_recording_destroy(other);
}

static void packed_tables_are_those_unpacked(void **state)
{
	static struct columns columns;

	(void)state;
	for (int has_steps = 0; has_steps < 2; has_steps++) {
		fill(&columns, has_steps);
		assert_equal_loads(&columns);
	}
}

static void missing_columns_are_bad_rows(void **state)
{
	static struct columns columns;

	(void)state;
	fill(&columns, true);
	columns.stacks.n_address = N - 1;
	columns.totals.n_seen = N - 1;
	assert_equal_loads(&columns);
}

static void stacks_out_of_range_are_bad_rows(void **state)
{
	static struct columns columns;

	(void)state;
	fill(&columns, true);
	columns.small[2][N / 2] = UINT32_MAX;
	columns.small[0][N / 2] = N; /* a parent with a higher number */
	assert_equal_loads(&columns);
}

static void estimates_stay_unpacked(void **state)
{
	static struct columns columns;
	static uint8_t bytes[ROOM], rest[ROOM];
	struct packed_messages messages = {0};
	size_t n;

	(void)state;
	fill(&columns, false);
	columns.totals.alloc_blocks_variance = columns.variances;
	columns.totals.n_alloc_blocks_variance = N;
	n = pack(&columns, bytes);
	assert_int_equal(torsh_chunk_split(bytes, n, &messages, rest), SIZE_MAX);
	assert_int_equal(messages.n, 0);
	free(messages.items);
}

/* Returns whether a message with field 1 as a number and 3 as a column is taken. */
static bool is_taken(const char *bytes, size_t n)
{
	const struct packed_fields fields = {.numbers = 2, .columns = 8};
	struct packed_message message = {0};

	return torsh_packed_message_open(&message, &fields, (const uint8_t *)bytes, n);
}

static void only_plain_messages_are_taken(void **state)
{
	(void)state;
#define TAKEN(text) is_taken(text, sizeof(text) - 1)
	assert_true(TAKEN("\x08\x05\x1a\x03\x01\x80\x01"));
	assert_true(TAKEN("\x1a\x00"));
	assert_true(TAKEN(""));
	assert_false(TAKEN("\x08\x05\x08\x05")); /* twice */
	assert_false(TAKEN("\x10\x05")); /* another field */
	assert_false(TAKEN("\x18\x05")); /* a column that isn't packed */
	assert_false(TAKEN("\x0a\x01\x05")); /* a number that is a column */
	assert_false(TAKEN("\x1a\x02\x01\x80")); /* its last value has no end */
	assert_false(TAKEN("\x1a\x04\x01\x01")); /* longer than the message */
	assert_false(TAKEN("\x08"));
	assert_false(TAKEN("\x08\x80"));
	assert_false(TAKEN("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01")); /* over 64 bits */
	assert_false(TAKEN("\xf8\xff\xff\xff\x0f\x01")); /* a number of a field that is too high */
#undef TAKEN
}

/* Returns the number of bytes of a message in a chunk, which has less than 128. */
static size_t put_message(uint8_t *out, uint8_t tag, const char *bytes, size_t n)
{
	out[0] = tag;
	out[1] = (uint8_t)n;
	memcpy(out + 2, bytes, n);
	return n + 2;
}

#define STACKS_TAG (CHUNK_FIELD_STACKS << 3 | 2)
#define TOTALS_TAG (CHUNK_FIELD_STACK_TOTALS << 3 | 2)
#define PUT(out, tag, text) put_message(out, tag, text, sizeof(text) - 1)

/* Two stacks, and totals of both. Returns the number of bytes. */
static size_t put_tables(uint8_t *out, const char *allocs, size_t n_allocs)
{
	static const uint8_t columns[] = {4, 5, 6, 7, 8, 9, 10, 11};
	char row[128] = "\x08\x03\x12\x02\x01\x02\x1a";
	size_t n = 7;

	row[n++] = (char)n_allocs;
	memcpy(row + n, allocs, n_allocs);
	n += n_allocs;
	for (size_t i = 0; i < sizeof(columns); i++) {
		memcpy(row + n, (char[]){(char)(columns[i] << 3 | 2), 2, 5, 0}, 4);
		n += 4;
	}
	out += PUT(out, STACKS_TAG, "\x08\x03\x10\x01\x1a\x02\x00\x01\x22\x02\x05\x06");
	return 14 + put_message(out, TOTALS_TAG, row, n);
}

static void assert_allocs(const struct recording *recording, uint64_t first, uint64_t second)
{
	const struct recorded_process *process = torsh_recording_process(recording, 3);

	assert_int_equal(recording->n_bad_rows, 0);
	assert_int_equal(process->totals.n, 2);
	assert_true(torsh_totals_at(&process->totals, 0).allocs == first);
	assert_true(torsh_totals_at(&process->totals, 1).allocs == second);
}

static void numbers_may_be_longer_than_they_need(void **state)
{
	uint8_t bytes[256];
	size_t n = put_tables(bytes, "\x80\x00\x87\x80\x00", 5);
	struct recording *one = load_unpacked(bytes, n), *other = load_packed(bytes, n);

	(void)state;
	assert_allocs(one, 0, 7);
	assert_allocs(other, 0, 7);
	torsh_recording_destroy(one);
	torsh_recording_destroy(other);
}

/* Unpacking refuses the whole chunk. */
static void bits_beyond_64_are_lost(void **state)
{
	uint8_t bytes[256];
	size_t n = put_tables(bytes, "\x83\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01\x07", 13);
	struct recording *recording = load_packed(bytes, n);

	(void)state;
	assert_null(torsh__chunk__unpack(NULL, n, bytes));
	assert_allocs(recording, 3, 7);
	torsh_recording_destroy(recording);
}

static void columns_longer_than_the_rows_are_bad_rows(void **state)
{
	uint8_t bytes[256];
	size_t n = put_tables(bytes, "\x01\x02\x03", 3);
	struct recording *one = load_unpacked(bytes, n), *other = load_packed(bytes, n);

	(void)state;
	assert_int_equal(one->n_bad_rows, 1);
	assert_int_equal(other->n_bad_rows, 1);
	assert_int_equal(torsh_recording_process(other, 3)->totals.n, 0);
	torsh_recording_destroy(one);
	torsh_recording_destroy(other);
}

static void empty_members_are_nothing(void **state)
{
	enum { EMPTY = 1000 };
	static uint8_t bytes[2 * EMPTY], rest[2 * EMPTY];
	struct recording *recording = torsh_recording_new("a");
	struct packed_messages messages = {0};
	size_t n = 0, n_rest;

	(void)state;
	for (size_t i = 0; i < EMPTY; i++)
		n += PUT(bytes + n, i % 2 ? STACKS_TAG : TOTALS_TAG, "");
	n_rest = torsh_chunk_split(bytes, n, &messages, rest);
	if (n_rest != SIZE_MAX) {
		Torsh__Chunk chunk = TORSH__CHUNK__INIT;

		assert_int_equal(n_rest, 0);
		assert_int_equal(torsh_recording_load_packed(recording, &chunk, &messages), 0);
		for (size_t i = 0; i < recording->n_processes; i++)
			assert_int_equal(recording->processes[i]->totals.n, 0);
	}
	torsh_recording_destroy(recording);
	free(messages.items);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packed_tables_are_those_unpacked),
		cmocka_unit_test(missing_columns_are_bad_rows),
		cmocka_unit_test(stacks_out_of_range_are_bad_rows),
		cmocka_unit_test(estimates_stay_unpacked),
		cmocka_unit_test(only_plain_messages_are_taken),
		cmocka_unit_test(numbers_may_be_longer_than_they_need),
		cmocka_unit_test(bits_beyond_64_are_lost),
		cmocka_unit_test(columns_longer_than_the_rows_are_bad_rows),
		cmocka_unit_test(empty_members_are_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
