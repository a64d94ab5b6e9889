/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Members left out of a packed chunk are gone, the others stay, and damage stays damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tools/store/chunk_members.h"

#define N 300u
#define ROOM 8192u

/* Pack a chunk with an end, two tables of stacks and one of threads. Returns its bytes. */
static size_t pack(uint8_t *out)
{
	uint32_t column[N];
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	Torsh__Stacks stacks = TORSH__STACKS__INIT, *tables[] = {&stacks, &stacks};
	Torsh__Threads threads = TORSH__THREADS__INIT, *thread_tables[] = {&threads};
	Torsh__End end = TORSH__END__INIT;

	for (uint32_t i = 0; i < N; i++)
		column[i] = i * 70000u;
	stacks.n_parent = stacks.n_address = threads.n_tid = N;
	stacks.parent = stacks.address = threads.tid = column;
	chunk.n_stacks = 2;
	chunk.stacks = tables;
	chunk.n_threads = 1;
	chunk.threads = thread_tables;
	end.has_at_ns = 1;
	end.at_ns = 12345;
	chunk.end = &end;
	assert_true(torsh__chunk__get_packed_size(&chunk) < ROOM);
	return torsh__chunk__pack(&chunk, out);
}

static void members_are_left_out(void **state)
{
	uint8_t bytes[ROOM];
	size_t n = torsh_chunk_leave_out(bytes, pack(bytes), CHUNK_MEMBER(STACKS));
	Torsh__Chunk *chunk = torsh__chunk__unpack(NULL, n, bytes);

	(void)state;
	assert_non_null(chunk);
	assert_int_equal(chunk->n_stacks, 0);
	assert_int_equal(chunk->n_threads, 1);
	assert_int_equal(chunk->threads[0]->tid[N - 1], (N - 1) * 70000u);
	assert_int_equal(chunk->end->at_ns, 12345);
	torsh__chunk__free_unpacked(chunk, NULL);
}

static void other_members_stay(void **state)
{
	uint8_t bytes[ROOM], before[ROOM];
	size_t n = pack(bytes);

	(void)state;
	memcpy(before, bytes, n);
	assert_int_equal(torsh_chunk_leave_out(bytes, n, CHUNK_MEMBER(MOMENTS)), n);
	assert_memory_equal(bytes, before, n);
}

static void a_cut_chunk_stays_damaged(void **state)
{
	uint8_t bytes[ROOM];
	size_t n = pack(bytes), left;

	(void)state;
	left = torsh_chunk_leave_out(bytes, n - 1, CHUNK_MEMBER(STACKS));
	assert_true(left > 0);
	assert_null(torsh__chunk__unpack(NULL, left, bytes));
}

static void field_numbers_are_those_of_the_format(void **state)
{
#define CHECK(NAME, name)                                                                        \
	assert_int_equal(                                                                        \
		protobuf_c_message_descriptor_get_field_by_name(&torsh__chunk__descriptor, name) \
			->id,                                                                    \
		CHUNK_FIELD_##NAME)
	(void)state;
	CHECK(STACKS, "stacks");
	CHECK(STACK_TOTALS, "stack_totals");
	CHECK(LIVE, "live");
	CHECK(JOINT, "joint");
	CHECK(GROWTH, "growth");
	CHECK(MOMENTS, "moments");
	CHECK(WINDOW_PEAK, "window_peak");
#undef CHECK
}

static void empty_messages_take_no_more_than_the_chunk_may(void **state)
{
	enum { N_EMPTY = 1 << 20 };
	struct packed_messages messages = {0};
	uint8_t *bytes = malloc(2 * N_EMPTY), *rest = malloc(2 * N_EMPTY);

	(void)state;
	assert_non_null(bytes);
	assert_non_null(rest);
	for (size_t i = 0; i < N_EMPTY; i++) {
		bytes[2 * i] = CHUNK_FIELD_STACKS << 3 | 2;
		bytes[2 * i + 1] = 0;
	}
	assert_int_equal(torsh_chunk_split(bytes, 200, &messages, rest), 0);
	assert_int_equal(messages.n, 100);
	assert_int_equal(torsh_chunk_split(bytes, 2 * N_EMPTY, &messages, rest), SIZE_MAX);
	assert_int_equal(messages.n, 0);
	assert_in_range(messages.n_room, 100, 1 << 17);
	free(messages.items);
	free(rest);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_are_left_out),
		cmocka_unit_test(other_members_stay),
		cmocka_unit_test(a_cut_chunk_stays_damaged),
		cmocka_unit_test(empty_messages_take_no_more_than_the_chunk_may),
		cmocka_unit_test(field_numbers_are_those_of_the_format),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
