/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Estimates from sampled blocks (collectors/heap/sampler.h). A block of s bytes is sampled with
 * probability p = 1 - exp(-s / rate), s at least 1, and then stands for 1 / p blocks of s bytes
 * each: the sum over the samples of a set of blocks is an unbiased estimate for the set (Horvitz
 * and Thompson 1952). Its variance is estimated by the sum of (1 - p) / p^2 for blocks, and of
 * s^2 times that for bytes.
 *
 * Numbers of blocks are whole: what rounding leaves of a site's sample is added to its next one.
 */
#ifndef TORSH_WRITER_FOLD_TABLES_SAMPLING_H
#define TORSH_WRITER_FOLD_TABLES_SAMPLING_H

#include <stddef.h>
#include <stdint.h>

struct sample_weight {
	int64_t blocks, bytes;
};

struct sample_variance {
	double blocks, bytes;
};

/* live: of the current estimate; base: at peak number `seen`, as in site_usage; total: of all. */
struct site_variance {
	struct sample_variance live, base, total;
	double remainder; /* of blocks */
	uint64_t n_live; /* samples */
	uint32_t seen;
};

struct sampling {
	uint64_t rate; /* bytes; 0: blocks are not sampled */
	struct site_variance *sites; /* by number; as many as had samples */
	uint32_t n_sites;
	size_t capacity;
};

/* Free the sites. */
void torsh_sampling_destroy(struct sampling *sampling);

/* What a new sample of the site stands for: at least one block. */
struct sample_weight torsh_sampling_weigh(struct sampling *sampling, uint32_t site, uint64_t size);

/* The bytes that a sample stands for. */
int64_t torsh_sampling_bytes(const struct sampling *sampling, uint64_t size);

/* Add a sample's part of the variance of a sum. */
void torsh_sampling_add_variance(const struct sampling *sampling, struct sample_variance *sum,
				 uint64_t size);

/* A sample came to the site (sign 1) or left it (-1), after this number of peaks. */
void torsh_sampling_note(struct sampling *sampling, uint32_t site, uint32_t peak_number,
			 uint64_t size, int sign);

/* The variances of a site; 0 without samples. */
struct site_variance torsh_sampling_of_site(const struct sampling *sampling, uint32_t site);

#endif
