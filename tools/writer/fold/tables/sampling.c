/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/tables/sampling.h"

#include <math.h>
#include <stdlib.h>

#include "tools/base/containers/array.h"

#define BLOCKS_MAX INT32_MAX /* what live_block's field holds */

/* Of the block and each byte of it. */
static double chance(const struct sampling *sampling, uint64_t size)
{
	return -expm1(-(double)(size + !size) / (double)sampling->rate);
}

static struct sample_variance variance_of(const struct sampling *sampling, uint64_t size)
{
	double p = chance(sampling, size), blocks = (1 - p) / (p * p);

	return (struct sample_variance){.blocks = blocks,
					.bytes = blocks * (double)size * (double)size};
}

static struct site_variance *take_site(struct sampling *sampling, uint32_t site)
{
	while (sampling->n_sites <= site) {
		sampling->sites =
			torsh_array_reserve(sampling->sites, sampling->n_sites, &sampling->capacity,
					    sizeof(*sampling->sites));
		sampling->sites[sampling->n_sites++] = (struct site_variance){0};
	}
	return &sampling->sites[site];
}

void torsh_sampling_destroy(struct sampling *sampling)
{
	free(sampling->sites);
	*sampling = (struct sampling){0};
}

int64_t torsh_sampling_bytes(const struct sampling *sampling, uint64_t size)
{
	return llrint((double)size / chance(sampling, size));
}

struct sample_weight torsh_sampling_weigh(struct sampling *sampling, uint32_t number, uint64_t size)
{
	struct site_variance *site = take_site(sampling, number);
	double blocks = 1 / chance(sampling, size) + site->remainder;
	int64_t whole = (int64_t)blocks;

	whole = whole < 1 ? 1 : whole > BLOCKS_MAX ? BLOCKS_MAX : whole;
	site->remainder = whole < BLOCKS_MAX ? blocks - (double)whole : 0;
	return (struct sample_weight){.blocks = whole,
				      .bytes = torsh_sampling_bytes(sampling, size)};
}

static void add(struct sample_variance *sum, const struct sample_variance *variance, int sign)
{
	sum->blocks += sign * variance->blocks;
	sum->bytes += sign * variance->bytes;
}

void torsh_sampling_add_variance(const struct sampling *sampling, struct sample_variance *sum,
				 uint64_t size)
{
	struct sample_variance variance = variance_of(sampling, size);

	add(sum, &variance, 1);
}

void torsh_sampling_note(struct sampling *sampling, uint32_t number, uint32_t peak_number,
			 uint64_t size, int sign)
{
	struct site_variance *site = take_site(sampling, number);
	struct sample_variance variance = variance_of(sampling, size);

	if (site->seen != peak_number) {
		site->seen = peak_number;
		site->base = site->live;
	}
	add(&site->live, &variance, sign);
	site->n_live += (uint64_t)(int64_t)sign;
	if (sign > 0)
		add(&site->total, &variance, 1);
	/* Subtraction leaves a rest: the sums are not exact. */
	if (!site->n_live || site->live.bytes < 0)
		site->live = (struct sample_variance){0};
}

struct site_variance torsh_sampling_of_site(const struct sampling *sampling, uint32_t site)
{
	return site < sampling->n_sites ? sampling->sites[site] : (struct site_variance){0};
}
