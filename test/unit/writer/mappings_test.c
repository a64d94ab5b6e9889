/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Ranges and mappings equal a map with one entry for each page. */
#include <stdbool.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "test/unit/fixtures/random.h"
#include "tools/writer/fold/mappings.h"

#define N_PAGES 64u
#define N_SITES 5u
#define N_EVENTS 100u
#define N_TRACES 3000u
#define PAGE UINT64_C(4096)
#define BASE UINT64_C(0x7f0000000000)

/* owner[i]: the mapping of page i, 0 none. piece[i] differs where another mapping begins. */
struct pages {
	uint32_t owner[N_PAGES], piece[N_PAGES];
	uint32_t n_pieces_made;
	uint64_t peak, peak_time, peak_of[N_SITES + 1];
	uint64_t total_of[N_SITES + 1];
};

static uint64_t count_pieces(const struct pages *pages)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < N_PAGES; i++)
		n += pages->owner[i] &&
		     (!i || !pages->owner[i - 1] || pages->piece[i - 1] != pages->piece[i]);
	return n;
}

static void sum_pages(const struct pages *pages, uint64_t *sum, uint64_t *sum_of)
{
	*sum = 0;
	memset(sum_of, 0, (N_SITES + 1) * sizeof(*sum_of));
	for (uint32_t i = 0; i < N_PAGES; i++) {
		if (pages->owner[i])
			*sum += PAGE;
		sum_of[pages->owner[i]] += PAGE;
	}
}

static void set_pages(struct pages *pages, uint32_t first, uint32_t n, uint32_t owner)
{
	pages->n_pieces_made++;
	for (uint32_t i = first; i < first + n; i++) {
		pages->owner[i] = owner;
		pages->piece[i] = pages->n_pieces_made;
	}
}

/* Cutting a mapping in two makes its second half a piece of its own. */
static void cut_pages(struct pages *pages, uint32_t first, uint32_t n)
{
	uint32_t end = first + n;

	if (n && first && end < N_PAGES && pages->owner[first - 1] && pages->owner[end] &&
	    pages->piece[first - 1] == pages->piece[end]) {
		uint32_t old = pages->piece[end];

		pages->n_pieces_made++;
		for (uint32_t i = end; i < N_PAGES && pages->piece[i] == old && pages->owner[i];
		     i++)
			pages->piece[i] = pages->n_pieces_made;
	}
	set_pages(pages, first, n, 0);
}

static void look_at_peak(struct pages *pages, uint64_t time)
{
	uint64_t sum, sum_of[N_SITES + 1];

	sum_pages(pages, &sum, sum_of);
	if (sum <= pages->peak)
		return;
	pages->peak = sum;
	pages->peak_time = time;
	memcpy(pages->peak_of, sum_of, sizeof(sum_of));
}

struct both {
	struct pages pages;
	struct mappings mappings;
	uint32_t stack_of[N_SITES + 1];
};

static void start(struct both *both)
{
	memset(both, 0, sizeof(*both));
	torsh_mappings_create(&both->mappings);
	both->mappings.page_bytes = PAGE;
	for (uint32_t i = 1; i <= N_SITES; i++)
		both->stack_of[i] = 3 * i;
}

static void finish(struct both *both)
{
	torsh_mappings_destroy(&both->mappings);
}

static void fold(struct both *both, const struct event *event, uint32_t owner)
{
	torsh_mappings_fold(&both->mappings, event, both->stack_of[owner]);
	look_at_peak(&both->pages, event->stamp);
}

struct place {
	uint32_t first, n;
};

static struct place some_place(uint64_t *random)
{
	struct place place = {.first = (uint32_t)random_below(random, N_PAGES)};

	place.n = 1 + (uint32_t)random_below(
			      random, N_PAGES - place.first < 12 ? N_PAGES - place.first : 12);
	return place;
}

/* Lengths that are no multiple of a page count as the next one. */
static uint64_t some_length(uint64_t *random, struct place place)
{
	return place.n * PAGE - random_below(random, 2) * random_below(random, PAGE);
}

static uint64_t address_of(uint32_t page)
{
	return BASE + page * PAGE;
}

static void map_some(struct both *both, uint64_t time, uint64_t *random)
{
	struct place place = some_place(random);
	uint32_t owner = 1 + (uint32_t)random_below(random, N_SITES);
	const struct event event = {
		.id = EVENT_MAP,
		.stamp = time,
		.map = {.address = address_of(place.first),
			.length = some_length(random, place),
			.flags = MAP_PRIVATE},
	};

	cut_pages(&both->pages, place.first, place.n);
	set_pages(&both->pages, place.first, place.n, owner);
	both->pages.total_of[owner] += place.n * PAGE;
	fold(both, &event, owner);
}

static void unmap_some(struct both *both, uint64_t time, uint64_t *random)
{
	struct place place = some_place(random);
	const struct event event = {
		.id = EVENT_UNMAP,
		.stamp = time,
		.unmap = {.address = address_of(place.first), .length = some_length(random, place)},
	};

	cut_pages(&both->pages, place.first, place.n);
	fold(both, &event, 0);
}

/* As the kernel does: grow or shrink where it stands, or move to a place that doesn't overlap. */
static void remap_some(struct both *both, uint64_t time, uint64_t *random)
{
	struct place from = some_place(random), to = some_place(random);
	uint32_t owner = 1 + (uint32_t)random_below(random, N_SITES);
	bool is_kept = random_below(random, 8) == 0;
	struct event event = {.id = EVENT_REMAP, .stamp = time};

	if (random_below(random, 2))
		to.first = from.first;
	if (to.first + to.n > N_PAGES)
		to.n = N_PAGES - to.first;
	if (to.first != from.first && to.first < from.first + from.n &&
	    from.first < to.first + to.n)
		return;
	event.remap = (struct event_remap){
		.old_address = address_of(from.first),
		.old_length = some_length(random, from),
		.address = address_of(to.first),
		.length = some_length(random, to),
	};
	if (to.first == from.first && to.n <= from.n) {
		cut_pages(&both->pages, to.first + to.n, from.n - to.n);
	} else {
		if (is_kept && to.first != from.first)
			event.remap.flags = 4; /* MREMAP_DONTUNMAP */
		else
			cut_pages(&both->pages, from.first, from.n);
		cut_pages(&both->pages, to.first, to.n);
		set_pages(&both->pages, to.first, to.n, owner);
		both->pages.total_of[owner] += to.n * PAGE;
	}
	fold(both, &event, owner);
}

static void move_break(struct both *both, uint64_t time, uint64_t *random)
{
	uint32_t old = (uint32_t)random_below(random, N_PAGES),
		 new = (uint32_t)random_below(random, N_PAGES);
	uint32_t owner = 1 + (uint32_t)random_below(random, N_SITES);
	const struct event event = {
		.id = EVENT_PROGRAM_BREAK,
		.stamp = time,
		.program_break = {.old_break = address_of(old), .new_break = address_of(new)},
	};

	if (new > old) {
		cut_pages(&both->pages, old, new - old);
		set_pages(&both->pages, old, new - old, owner);
		both->pages.total_of[owner] += (new - old) * PAGE;
	} else if (new < old) {
		cut_pages(&both->pages, new, old - new);
	}
	fold(both, &event, owner);
}

/* Site 0, without a stack, has nothing here. */
static const struct map_site *site_of(const struct both *both, uint32_t i)
{
	const struct mappings *mappings = &both->mappings;
	uint32_t site = mappings->n_sites;

	while (--site && mappings->sites[site].stack != both->stack_of[i])
		;
	return &mappings->sites[site];
}

static void assert_same_now(const struct both *both)
{
	uint64_t sum, sum_of[N_SITES + 1];

	sum_pages(&both->pages, &sum, sum_of);
	assert_int_equal(both->mappings.tracker.bytes, sum);
	assert_int_equal(both->mappings.tracker.n, count_pieces(&both->pages));
	for (uint32_t i = 1; i <= N_SITES; i++) {
		const struct map_site *site = site_of(both, i);

		assert_int_equal(site->live.bytes, sum_of[i]);
		assert_int_equal(site->total_bytes, both->pages.total_of[i]);
	}
	for (uint32_t i = 0; i < N_PAGES; i++) {
		const struct address_range *range =
			torsh_address_ranges_above(&both->mappings.ranges, address_of(i));
		bool is_mapped = range && range->start <= address_of(i);

		assert_int_equal(is_mapped, both->pages.owner[i] != 0);
		if (is_mapped)
			assert_int_equal(both->mappings.sites[range->owner].stack,
					 both->stack_of[both->pages.owner[i]]);
	}
}

static void assert_same_peak(struct both *both)
{
	const struct peak_tracker *tracker = &both->mappings.tracker;

	torsh_peak_tracker_settle(&both->mappings.tracker);
	assert_int_equal(tracker->peak_bytes, both->pages.peak);
	assert_int_equal(tracker->peak_stamp, both->pages.peak_time);
	for (uint32_t i = 1; i <= N_SITES; i++) {
		const struct map_site *site = site_of(both, i);

		assert_int_equal(torsh_site_usage_peak_bytes(&site->live, tracker),
				 both->pages.peak_of[i]);
	}
}

static void any_trace_is_as_a_map_of_pages(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= N_TRACES; seed++) {
		uint64_t random = seed;
		struct both both;

		start(&both);
		for (uint64_t time = 1; time <= N_EVENTS; time++) {
			static void (*const changes[])(struct both *, uint64_t, uint64_t *) = {
				map_some, map_some, unmap_some, remap_some, move_break,
			};

			changes[random_below(&random, 5)](&both, time, &random);
			assert_same_now(&both);
		}
		assert_same_peak(&both);
		finish(&both);
	}
}

/* MAP_FIXED over three mappings: one change, so that there is no dip and no false peak. */
static void a_mapping_over_others_is_one_change(void **state)
{
	struct both both;
	struct event event = {.id = EVENT_MAP};

	(void)state;
	start(&both);
	for (uint32_t i = 0; i < 3; i++) {
		event.stamp = i + 1;
		event.map = (struct event_map){.address = address_of(2 * i), .length = 2 * PAGE};
		torsh_mappings_fold(&both.mappings, &event, both.stack_of[1]);
	}
	event.stamp = 9;
	event.map = (struct event_map){
		.address = address_of(1), .length = 4 * PAGE, .flags = MAP_FIXED};
	torsh_mappings_fold(&both.mappings, &event, both.stack_of[2]);
	torsh_peak_tracker_settle(&both.mappings.tracker);
	assert_int_equal(both.mappings.tracker.bytes, 6 * PAGE);
	assert_int_equal(both.mappings.tracker.n, 3);
	assert_int_equal(both.mappings.tracker.peak_bytes, 6 * PAGE);
	assert_int_equal(both.mappings.tracker.peak_stamp, 3);
	finish(&both);
}

static void huge_pages_are_counted_whole(void **state)
{
	const struct event event = {
		.id = EVENT_MAP,
		.stamp = 1,
		.map = {.address = UINT64_C(1) << 30,
			.length = 5000,
			.flags = MAP_PRIVATE | MAP_HUGETLB},
	};
	struct both both;

	(void)state;
	start(&both);
	torsh_mappings_fold(&both.mappings, &event, both.stack_of[1]);
	assert_int_equal(both.mappings.tracker.bytes, 2u << 20);
	finish(&both);
}

static void what_can_not_be_changes_nothing(void **state)
{
	static const struct event events[] = {
		{.id = EVENT_MAP, .map = {.address = UINT64_MAX - 100, .length = 1 << 20}},
		{.id = EVENT_MAP, .map = {.address = 4096, .length = UINT64_MAX}},
		{.id = EVENT_UNMAP, .unmap = {.address = UINT64_MAX, .length = UINT64_MAX}},
		{.id = EVENT_UNMAP, .unmap = {.address = 0, .length = 0}},
		{.id = EVENT_REMAP,
		 .remap = {.old_address = UINT64_MAX,
			   .old_length = 5,
			   .address = 0,
			   .length = UINT64_MAX}},
		{.id = EVENT_PROGRAM_BREAK,
		 .program_break = {.old_break = UINT64_MAX, .new_break = UINT64_MAX}},
	};
	struct both both;

	(void)state;
	start(&both);
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		torsh_mappings_fold(&both.mappings, &events[i], both.stack_of[1]);
	assert_int_equal(both.mappings.tracker.bytes, 0);
	assert_int_equal(both.mappings.tracker.n, 0);
	finish(&both);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_trace_is_as_a_map_of_pages),
		cmocka_unit_test(a_mapping_over_others_is_one_change),
		cmocka_unit_test(huge_pages_are_counted_whole),
		cmocka_unit_test(what_can_not_be_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
