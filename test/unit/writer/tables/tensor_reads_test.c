/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The last reads of tensors equal those of a plain array, after any reads and frees. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test/unit/fixtures/random.h"
#include "tools/writer/fold/tables/tensor_reads.h"

#define N_PLACES 500u
#define N_CHANGES 200000u

static uint64_t address_of(uint64_t place)
{
	return UINT64_C(0x7f0000000000) + place * 64;
}

static void read_some(struct tensor_reads *reads, struct tensor_read *model, uint32_t stamp,
		      uint64_t *random)
{
	uint64_t places[4] = {0};
	uint64_t n = 1 + random_next(random) % 4;
	struct event_op_read event = {.name = 1 + stamp % 7};
	uint64_t *const fields[] = {&event.first, &event.second, &event.third, &event.fourth};

	for (uint64_t i = 0; i < n; i++) {
		places[i] = random_next(random) % N_PLACES;
		*fields[i] = address_of(places[i]);
		model[places[i]] = (struct tensor_read){
			.stamp = stamp, .operator= event.name, .step = stamp / 9};
	}
	torsh_tensor_reads_take(reads, &event, stamp, stamp / 9);
}

static void reads_and_frees_leave_what_an_array_has(void **state)
{
	struct tensor_reads reads = {0};
	struct tensor_read model[N_PLACES] = {0};
	uint64_t random = 3;

	(void)state;
	for (uint32_t stamp = 1; stamp <= N_CHANGES; stamp++) {
		uint64_t place = random_next(&random) % N_PLACES;

		if (stamp % 3) {
			read_some(&reads, model, stamp, &random);
		} else {
			torsh_tensor_reads_forget(&reads, address_of(place));
			model[place] = (struct tensor_read){0};
		}
		place = random_next(&random) % N_PLACES;
		if (model[place].stamp)
			assert_memory_equal(torsh_tensor_reads_find(&reads, address_of(place)),
					    &model[place], sizeof(model[place]));
		else
			assert_null(torsh_tensor_reads_find(&reads, address_of(place)));
	}
	assert_true(reads.n <= N_PLACES);
	torsh_tensor_reads_free(&reads);
}

static void addresses_beyond_the_limit_are_counted(void **state)
{
	struct tensor_reads reads = {0};

	(void)state;
	for (uint64_t i = 0; i < TENSOR_READS_MAX + 5; i++)
		torsh_tensor_reads_take(&reads,
					&(struct event_op_read){.name = 1, .first = address_of(i)},
					i + 1, 0);
	assert_int_equal(reads.n_left_out, 5);
	assert_null(torsh_tensor_reads_find(&reads, address_of(TENSOR_READS_MAX)));
	/* One that is freed makes room. */
	torsh_tensor_reads_forget(&reads, address_of(0));
	torsh_tensor_reads_take(
		&reads, &(struct event_op_read){.name = 1, .first = address_of(TENSOR_READS_MAX)},
		1, 0);
	assert_non_null(torsh_tensor_reads_find(&reads, address_of(TENSOR_READS_MAX)));
	torsh_tensor_reads_free(&reads);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_and_frees_leave_what_an_array_has),
		cmocka_unit_test(addresses_beyond_the_limit_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
