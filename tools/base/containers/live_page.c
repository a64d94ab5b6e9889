/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/base/containers/live_page.h"

#include <stdbool.h>
#include <stdlib.h>

#include "tools/base/memory.h"

static uint32_t blocks_at_most(uint32_t n_buckets)
{
	return n_buckets / 8 * 7 * BUCKET_SLOTS;
}

static void set_size(struct live_page *page, uint32_t n)
{
	page->n_buckets = n;
	page->full_at = blocks_at_most(n);
}

/* Empty n buckets. */
static void set_buckets(struct live_page *page, uint32_t n)
{
	if (n < SMALL_BUCKETS) {
		page->n_room = n;
		page->buckets = torsh_memory_lines(n, sizeof(*page->buckets));
	} else if (n < HUGE_BUCKETS) {
		page->n_room = HUGE_BUCKETS - 1;
		page->buckets = torsh_memory_pages(torsh_live_page_bytes(page->n_room));
	} else {
		page->n_room = n <= PAGE_BUCKETS ? PAGE_BUCKETS : 2 * n;
		page->buckets = torsh_memory_region(torsh_live_page_bytes(page->n_room));
	}
	set_size(page, n);
}

static void free_buckets(struct live_bucket *buckets, uint32_t n_room)
{
	if (n_room < SMALL_BUCKETS)
		free(buckets);
	else
		torsh_memory_region_free(buckets, torsh_live_page_bytes(n_room));
}

struct live_page *torsh_live_page_create(uint32_t n, uint32_t depth)
{
	struct live_page *page = torsh_memory_new(1, sizeof(*page));

	set_buckets(page, n);
	page->depth = depth;
	return page;
}

static void put_slot(struct live_page *page, const struct live_bucket *from, uint32_t i)
{
	uint64_t address = torsh_bucket_address(from, i);
	struct live_place place = torsh_live_page_add(page, torsh_live_hash(address), address);

	torsh_bucket_copy(place.bucket, place.slot, from, i);
}

/*
 * Move a block up, out of the bucket `least`, while its page is spread. Blocks above are already in
 * place. Only past the page's last bucket it may take a slot that is looked at again; then it
 * counts twice in the buckets that it passed.
 */
static void put_above(struct live_page *page, const struct live_bucket *from, uint32_t k,
		      uint32_t least)
{
	uint64_t address = torsh_bucket_address(from, k);
	uint32_t home = torsh_live_page_home(page, torsh_live_hash(address)), i = home;

	for (;;) {
		struct live_bucket *bucket = &page->buckets[i];
		uint64_t empty = torsh_bucket_empty(bucket);

		if (empty && (i >= least || i < home)) {
			torsh_bucket_copy(bucket, torsh_bucket_first(empty), from, k);
			return;
		}
		torsh_bucket_pass(bucket, address);
		i = torsh_live_page_after(page, i);
	}
}

/*
 * Spread the blocks of n_old buckets over the page's new, larger number of buckets: each stays
 * where it is or moves up.
 */
static void spread(struct live_page *page, uint32_t n_old)
{
	for (uint32_t i = 0; i < n_old; i++) {
		page->buckets[i].tags &= ~(UINT64_MAX << PAST_SHIFT);
		page->buckets[i].passed = 0;
	}
	for (uint32_t i = n_old; i-- > 0;) {
		struct live_bucket old = page->buckets[i];

		for (uint32_t k = 0; k < BUCKET_SLOTS; k++) {
			if (!torsh_bucket_has(&old, k))
				continue;
			torsh_bucket_clear(&page->buckets[i], k);
			put_above(page, &old, k, i);
		}
	}
}

void torsh_live_page_destroy(struct live_page *page)
{
	free_buckets(page->buckets, page->n_room);
	free(page);
}

/* Move the page's blocks into an allocation of their own with n buckets. */
static void move_page(struct live_page *page, uint32_t n)
{
	struct live_bucket *old = page->buckets;
	uint32_t n_old = page->n_buckets, n_old_room = page->n_room;

	set_buckets(page, n);
	page->n_blocks = 0;
	for (uint32_t i = 0; i < n_old; i++) {
		for (uint32_t k = 0; k < BUCKET_SLOTS; k++) {
			if (torsh_bucket_has(&old[i], k))
				put_slot(page, &old[i], k);
		}
	}
	free_buckets(old, n_old_room);
}

static uint32_t at_most_next(uint32_t n, uint32_t n_larger, uint32_t limit)
{
	return n < limit && n_larger > limit ? limit : n_larger;
}

/*
 * A multiple of 8, so that a page can be split; of large pages a multiple of REGION_BUCKETS,
 * because what they touch of a huge page they have whole.
 */
static uint32_t larger(uint32_t n)
{
	uint32_t unit = n < HUGE_BUCKETS ? 8 : REGION_BUCKETS, more = n / 8 & ~(unit - 1);
	uint32_t n_larger = n + (more ? more : unit);

	return at_most_next(n, at_most_next(n, n_larger, HUGE_BUCKETS), PAGE_BUCKETS);
}

void torsh_live_page_enlarge(struct live_page *page)
{
	uint32_t n_old = page->n_buckets, n = larger(n_old);

	if (n > page->n_room) {
		move_page(page, n);
		return;
	}
	set_size(page, n);
	spread(page, n_old);
	if (n >= SMALL_BUCKETS && n < HUGE_BUCKETS)
		torsh_memory_collapse(page->buckets, torsh_live_page_bytes(n));
}

void torsh_live_page_halve(struct live_page *page, struct live_page *upper)
{
	uint32_t n = page->n_buckets, shift = 63 - page->depth;

	for (uint32_t i = 0; i < n; i++) {
		struct live_bucket *bucket = &page->buckets[i];

		for (uint32_t k = 0; k < BUCKET_SLOTS; k++) {
			if (!torsh_bucket_has(bucket, k) ||
			    !(torsh_live_hash(torsh_bucket_address(bucket, k)) >> shift & 1))
				continue;
			put_slot(upper, bucket, k);
			torsh_bucket_clear(bucket, k);
			page->n_blocks--;
		}
	}
	page->depth++;
	set_size(page, n / 2);
	/* Blocks past the half's last bucket now follow it from the start of the page. */
	for (uint32_t i = n / 2; i < n; i++) {
		for (uint32_t k = 0; k < BUCKET_SLOTS; k++) {
			if (!torsh_bucket_has(&page->buckets[i], k))
				continue;
			page->n_blocks--;
			put_slot(page, &page->buckets[i], k);
		}
	}
	torsh_memory_region_empty(&page->buckets[n / 2], torsh_live_page_bytes(n / 2));
}

void torsh_live_page_shrink(struct live_page *page, uint32_t n_removed)
{
	uint32_t n = FIRST_BUCKETS;

	while (blocks_at_most(n) <= page->n_blocks - n_removed)
		n = larger(n);
	/* Also if the page keeps its size: its buckets still count removed blocks. */
	if (n_removed)
		move_page(page, n);
}
