/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Columns become differences and come back, also through the bytes of a chunk; chunks with plain
 * columns stay so.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/unit/fixtures/random.h"
#include "tools/store/delta.h"

#define N 100u

struct columns {
	uint32_t parent[N], stack[N], address[N];
	uint64_t ip[N], first_ns[N], last_ns[N];
};

/* A chunk over the columns, with all messages that have differences. */
struct sample {
	struct columns is;
	Torsh__Addresses addresses, *addresses_row;
	Torsh__Symbols symbols, *symbols_row;
	Torsh__Stacks stacks, *stacks_row;
	Torsh__StackTotals totals, *totals_row;
	Torsh__Live live, *live_row;
	Torsh__Chunk chunk;
};

#define COLUMN(row, field, values) ((row).n_##field = N, (row).field = (values))

static void fill(struct sample *s, const struct columns *values)
{
	memset(s, 0, sizeof(*s));
	s->is = *values;
	s->addresses = (Torsh__Addresses)TORSH__ADDRESSES__INIT;
	s->symbols = (Torsh__Symbols)TORSH__SYMBOLS__INIT;
	s->stacks = (Torsh__Stacks)TORSH__STACKS__INIT;
	s->totals = (Torsh__StackTotals)TORSH__STACK_TOTALS__INIT;
	s->live = (Torsh__Live)TORSH__LIVE__INIT;
	s->chunk = (Torsh__Chunk)TORSH__CHUNK__INIT;
	COLUMN(s->addresses, ip, s->is.ip);
	COLUMN(s->symbols, address, s->is.address);
	s->stacks.has_first = 1;
	s->stacks.first = 1000;
	COLUMN(s->stacks, parent, s->is.parent);
	COLUMN(s->totals, stack, s->is.stack);
	COLUMN(s->live, first_ns, s->is.first_ns);
	COLUMN(s->live, last_ns, s->is.last_ns);
#define ONE(field) (s->field##_row = &s->field)
	s->chunk.n_addresses = s->chunk.n_symbols = s->chunk.n_stacks = s->chunk.n_live = 1;
	s->chunk.n_stack_totals = 1;
	ONE(addresses), ONE(symbols), ONE(stacks), ONE(totals), ONE(live);
#undef ONE
	s->chunk.addresses = &s->addresses_row;
	s->chunk.symbols = &s->symbols_row;
	s->chunk.stacks = &s->stacks_row;
	s->chunk.stack_totals = &s->totals_row;
	s->chunk.live = &s->live_row;
}

static void make_values(struct columns *values, uint64_t seed)
{
	for (uint32_t i = 0; i < N; i++) {
		values->parent[i] = (uint32_t)random_below(&seed, 1000 + i);
		values->stack[i] = (uint32_t)random_wide(&seed);
		values->address[i] = (uint32_t)random_wide(&seed);
		values->ip[i] = random_wide(&seed);
		values->first_ns[i] = random_wide(&seed);
		values->last_ns[i] = random_wide(&seed);
	}
}

static void assert_plain(const Torsh__Chunk *chunk, const struct columns *values)
{
	assert_int_equal(chunk->addresses[0]->n_ip, N);
	assert_memory_equal(chunk->addresses[0]->ip, values->ip, sizeof(values->ip));
	assert_memory_equal(chunk->symbols[0]->address, values->address, sizeof(values->address));
	assert_int_equal(chunk->stacks[0]->n_parent, N);
	assert_memory_equal(chunk->stacks[0]->parent, values->parent, sizeof(values->parent));
	assert_memory_equal(chunk->stack_totals[0]->stack, values->stack, sizeof(values->stack));
	assert_memory_equal(chunk->live[0]->first_ns, values->first_ns, sizeof(values->first_ns));
	assert_memory_equal(chunk->live[0]->last_ns, values->last_ns, sizeof(values->last_ns));
	assert_int_equal(chunk->stacks[0]->n_parent_back | chunk->addresses[0]->n_ip_step |
				 chunk->live[0]->n_first_step_ns | chunk->live[0]->n_last_after_ns,
			 0);
}

static Torsh__Chunk *through_bytes(const Torsh__Chunk *chunk)
{
	size_t n = torsh__chunk__get_packed_size(chunk);
	uint8_t *bytes = malloc(n);
	Torsh__Chunk *read;

	torsh__chunk__pack(chunk, bytes);
	read = torsh__chunk__unpack(NULL, n, bytes);
	free(bytes);
	assert_non_null(read);
	return read;
}

static void differences_come_back(void **state)
{
	struct columns values;
	struct sample sample;

	(void)state;
	for (uint64_t seed = 1; seed < 50; seed++) {
		Torsh__Chunk *read;

		make_values(&values, seed);
		fill(&sample, &values);
		torsh_delta_encode(&sample.chunk);
		assert_int_equal(sample.stacks.n_parent, 0);
		assert_int_equal(sample.live.n_last_after_ns, N);
		read = through_bytes(&sample.chunk);
		torsh_delta_decode(&sample.chunk);
		assert_plain(&sample.chunk, &values);
		torsh_delta_decode(read);
		assert_plain(read, &values);
		torsh__chunk__free_unpacked(read, NULL);
	}
}

static void plain_columns_stay(void **state)
{
	struct columns values;
	struct sample sample;
	Torsh__Chunk *read;

	(void)state;
	make_values(&values, 7);
	fill(&sample, &values);
	read = through_bytes(&sample.chunk);
	torsh_delta_decode(read);
	assert_plain(read, &values);
	torsh__chunk__free_unpacked(read, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(differences_come_back),
		cmocka_unit_test(plain_columns_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
