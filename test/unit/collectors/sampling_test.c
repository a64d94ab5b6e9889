/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Sampled heaps end to end, without processes: gaps, weights, intervals, the set of samples. */
#include "tools/writer/fold/tables/sampling.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "collectors/heap/sample_gap.h"
#include "collectors/heap/sampled_blocks.h"
#include "tools/recording/estimate.h"

#define RATE UINT64_C(65536)
#define N_RUNS 200u

/* Sites of a program: each allocates so many blocks of one size, or of two sizes in turn. */
static const struct site {
	uint64_t sizes[2];
	uint64_t n;
} sites[] = {
	{{64, 64}, 20000},    {{1000, 1000}, 3000}, {{16384, 16384}, 100}, {{65536, 65536}, 50},
	{{100000, 200}, 200}, {{24, 4096}, 2000},   {{131072, 32768}, 60},
};

#define N_SITES (sizeof(sites) / sizeof(*sites))

struct estimate {
	uint64_t blocks, bytes;
	struct sample_variance variance;
};

static void run_site(uint32_t number, uint64_t *random, int64_t *left, struct estimate *estimate)
{
	struct sampling sampling = {.rate = RATE};
	const struct site *site = &sites[number];

	*estimate = (struct estimate){0};
	for (uint64_t i = 0; i < site->n; i++) {
		uint64_t size = site->sizes[i % 2];
		struct sample_weight weight;

		*left -= (int64_t)size;
		if (*left > 0)
			continue;
		*left = torsh_sampler_gap(random, RATE);
		weight = torsh_sampling_weigh(&sampling, 0, size);
		estimate->blocks += (uint64_t)weight.blocks;
		estimate->bytes += (uint64_t)weight.bytes;
		torsh_sampling_add_variance(&sampling, &estimate->variance, size);
	}
	torsh_sampling_destroy(&sampling);
}

static uint64_t true_bytes(const struct site *site)
{
	return (site->sizes[0] + site->sizes[1]) * site->n / 2;
}

static bool holds(uint64_t truth, uint64_t estimate, double variance)
{
	struct estimate_interval interval = torsh_estimate_interval(estimate, variance);

	return truth >= interval.low && truth <= interval.high;
}

static void intervals_hold_in_95_percent(void **state)
{
	uint32_t n_bytes = 0, n_blocks = 0, n_of_one_size = 0, n_sums = 0;
	double mean[N_SITES] = {0};

	(void)state;
	for (uint64_t run = 1; run <= N_RUNS; run++) {
		uint64_t random = run * UINT64_C(0x9e3779b97f4a7c15), truth = 0;
		int64_t left = torsh_sampler_gap(&random, RATE);
		struct estimate sum = {0}, estimate;

		for (uint32_t i = 0; i < N_SITES; i++) {
			run_site(i, &random, &left, &estimate);
			n_bytes += holds(true_bytes(&sites[i]), estimate.bytes,
					 estimate.variance.bytes);
			/* Nothing is known of a size of which no block was a sample. */
			if (sites[i].sizes[0] == sites[i].sizes[1]) {
				n_blocks += holds(sites[i].n, estimate.blocks,
						  estimate.variance.blocks);
				n_of_one_size++;
			}
			mean[i] += (double)estimate.bytes / (double)true_bytes(&sites[i]) / N_RUNS;
			truth += true_bytes(&sites[i]);
			sum.bytes += estimate.bytes;
			sum.variance.bytes += estimate.variance.bytes;
		}
		n_sums += holds(truth, sum.bytes, sum.variance.bytes);
	}
	print_message("bytes %u of %zu, blocks %u of %u, sums %u of %u\n", n_bytes,
		      N_SITES * N_RUNS, n_blocks, n_of_one_size, n_sums, N_RUNS);
	assert_in_range(n_bytes, 93 * N_SITES * N_RUNS / 100, 97 * N_SITES * N_RUNS / 100);
	assert_in_range(n_blocks, 93 * n_of_one_size / 100, 97 * n_of_one_size / 100);
	assert_in_range(n_sums, 93 * N_RUNS / 100, 97 * N_RUNS / 100);
	for (uint32_t i = 0; i < N_SITES; i++)
		assert_true(mean[i] > 0.95 && mean[i] < 1.05);
}

static void gaps_are_exponential(void **state)
{
	uint64_t random = 1, sum = 0, n_long = 0;

	(void)state;
	for (int i = 0; i < 1000000; i++) {
		int64_t gap = torsh_sampler_gap(&random, RATE);

		assert_true(gap > 0);
		sum += (uint64_t)gap;
		n_long += gap > 3 * (int64_t)RATE;
	}
	assert_in_range(sum / 1000000, RATE * 997 / 1000, RATE * 1003 / 1000);
	/* exp(-3) of them */
	assert_in_range(n_long, 49000, 50600);
}

static void blocks_of_no_bytes_can_be_samples(void **state)
{
	struct sampling sampling = {.rate = 1024};
	struct sample_weight weight = torsh_sampling_weigh(&sampling, 3, 0);

	(void)state;
	assert_int_equal(weight.blocks, 1024);
	assert_int_equal(weight.bytes, 0);
	torsh_sampling_destroy(&sampling);
}

static void what_rounding_leaves_is_kept(void **state)
{
	struct sampling sampling = {.rate = RATE};
	int64_t sum = 0;

	(void)state;
	/* each stands for 1.58198 blocks */
	for (int i = 0; i < 1000; i++)
		sum += torsh_sampling_weigh(&sampling, 0, RATE).blocks;
	assert_in_range(sum, 1581, 1582);
	torsh_sampling_destroy(&sampling);
}

static void variances_at_the_peak_stay(void **state)
{
	struct sampling sampling = {.rate = RATE};
	struct site_variance site;

	(void)state;
	torsh_sampling_note(&sampling, 0, 0, 100, 1);
	torsh_sampling_note(&sampling, 0, 1, 100, -1);
	site = torsh_sampling_of_site(&sampling, 0);
	assert_true(site.base.bytes > 0);
	assert_true(site.live.bytes == 0);
	assert_true(site.total.bytes == site.base.bytes);
	assert_int_equal(site.seen, 1);
	assert_true(torsh_sampling_of_site(&sampling, 1).live.bytes == 0);
	torsh_sampling_destroy(&sampling);
}

#define N_ADDRESSES 60000u

/* More than the first levels hold, at addresses with few different low bits. */
static void no_block_is_taken_for_a_sample(void **state)
{
	uintptr_t step = 4096, base = UINT64_C(0x7f0000000010);

	(void)state;
	for (uintptr_t i = 0; i < N_ADDRESSES; i++)
		assert_true(torsh_sampled_blocks_add((void *)(base + 2 * i * step)));
	for (uintptr_t i = 0; i < N_ADDRESSES; i++) {
		const void *sample = (void *)(base + 2 * i * step),
			   *other = (void *)(base + (2 * i + 1) * step);

		assert_true(torsh_sampled_blocks_may_have(sample));
		assert_true(torsh_sampled_blocks_have(sample));
		assert_false(torsh_sampled_blocks_have(other));
		assert_false(torsh_sampled_blocks_remove(other));
	}
	for (uintptr_t i = 0; i < N_ADDRESSES; i++) {
		const void *sample = (void *)(base + 2 * i * step);

		assert_true(torsh_sampled_blocks_remove(sample));
		assert_false(torsh_sampled_blocks_remove(sample));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(intervals_hold_in_95_percent),
		cmocka_unit_test(gaps_are_exponential),
		cmocka_unit_test(blocks_of_no_bytes_can_be_samples),
		cmocka_unit_test(what_rounding_leaves_is_kept),
		cmocka_unit_test(variances_at_the_peak_stay),
		cmocka_unit_test(no_block_is_taken_for_a_sample),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
