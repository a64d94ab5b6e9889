/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The clocks of deferred events: the C library's, converted by their distance from CLOCK_MONOTONIC
 * now, and those of the program, by the points and rates that it gave or by reading them.
 */
#include <stdatomic.h>
#include <time.h>

#include "agent/producer/key_map.h"
#include "collectors/ranges/nvtx/nvtx_deferred.h"
#include "shim/ranges/ranges.h"

#define N_CLOCKS 8u
#define SLOT_OF_TIMESTAMPS 8 /* of the payload extension */
#define NS_PER_S 1000000000

/* A time of the program's clock and of CLOCK_MONOTONIC at one moment. */
struct point {
	int64_t at, at_ns;
};

/* A reader sees points that are whole, as n_points counts. */
static struct clock {
	_Atomic uint64_t key; /* of its domain and id; 0: free */
	uint64_t scope, type;
	double ns_per_tick; /* stated by the program; 0: from two points */
	int64_t (*read)(void *data);
	void *data;
	struct point first;
	_Atomic int64_t last_at, last_at_ns;
	_Atomic uint32_t n_points; /* twice, and 1 while one is written */
} clocks[N_CLOCKS];

static int64_t read_clock(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

int64_t torsh_nvtx_now(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

/*
 * Returns whether the type is a clock of the C library, of nanoseconds. That of the tool is the
 * agent's, unless a consumer gave the times.
 */
static bool is_system_clock(uint64_t type, clockid_t *id)
{
	switch (type) {
	case NVTX_CLOCK_NONE:
	case NVTX_CLOCK_TOOL:
		*id = CLOCK_MONOTONIC;
		return !torsh_nvtx_consumer_payload[SLOT_OF_TIMESTAMPS];
	case NVTX_CLOCK_MONOTONIC:
	case NVTX_CLOCK_MONOTONIC_COARSE:
	case NVTX_CLOCK_CPP_STEADY:
		*id = CLOCK_MONOTONIC;
		return true;
	case NVTX_CLOCK_REALTIME:
	case NVTX_CLOCK_REALTIME_COARSE:
	case NVTX_CLOCK_CPP_SYSTEM:
		*id = CLOCK_REALTIME;
		return true;
	case NVTX_CLOCK_MONOTONIC_RAW:
		*id = CLOCK_MONOTONIC_RAW;
		return true;
	case NVTX_CLOCK_BOOTTIME:
		*id = CLOCK_BOOTTIME;
		return true;
	default:
		return false;
	}
}

static struct clock *find_clock(void *domain, uint64_t id)
{
	uint64_t key = torsh_key_map_mix((uintptr_t)domain, id);

	for (struct clock *clock = clocks; clock < clocks + N_CLOCKS; clock++)
		if (atomic_load_explicit(&clock->key, memory_order_acquire) == key)
			return clock;
	return NULL;
}

/* The clock of that id, made if it is new; NULL: there are too many. */
static struct clock *need_clock(void *domain, uint64_t id)
{
	struct clock *clock = find_clock(domain, id);
	uint64_t key = torsh_key_map_mix((uintptr_t)domain, id), none = 0;

	for (size_t i = 0; !clock && i < N_CLOCKS; i++, none = 0)
		if (atomic_compare_exchange_strong(&clocks[i].key, &none, key))
			clock = &clocks[i];
	if (!clock)
		torsh_ranges_note("NVTX: the program has too many time domains: deferred events of "
				  "the last ones are left out");
	return clock;
}

/* A point that another thread, or what this one interrupted, is writing takes this one's place. */
static void add_point(struct clock *clock, struct point point)
{
	uint32_t n = atomic_load_explicit(&clock->n_points, memory_order_relaxed);

	if (n & 1 || !atomic_compare_exchange_strong(&clock->n_points, &n, n + 1))
		return;
	atomic_thread_fence(memory_order_release);
	if (n) {
		atomic_store_explicit(&clock->last_at, point.at, memory_order_relaxed);
		atomic_store_explicit(&clock->last_at_ns, point.at_ns, memory_order_relaxed);
	} else {
		clock->first = point;
	}
	/* Pairs with the acquire in last_point. */
	atomic_store_explicit(&clock->n_points, n + 2, memory_order_release);
}

/* Returns how many points there are; *last is the last one. 0: none, or it changes now. */
static uint32_t last_point(struct clock *clock, struct point *last)
{
	/* Pairs with the release in add_point. */
	uint32_t n = atomic_load_explicit(&clock->n_points, memory_order_acquire);

	if (n < 2 || n & 1)
		return 0;
	*last = n == 2 ? clock->first
		       : (struct point){
				 atomic_load_explicit(&clock->last_at, memory_order_relaxed),
				 atomic_load_explicit(&clock->last_at_ns, memory_order_relaxed)};
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&clock->n_points, memory_order_relaxed) == n ? n / 2 : 0;
}

/* Read the program's clock between two readings of the agent's. */
static struct point read_point(const struct clock *clock)
{
	int64_t before_ns = torsh_nvtx_now(), at = clock->read(clock->data);

	return (struct point){at, before_ns + (torsh_nvtx_now() - before_ns) / 2};
}

void torsh_nvtx_time_domain(void *domain, uint64_t id, const struct nvtx_time_domain *attributes)
{
	struct clock *clock = need_clock(domain, id);

	if (!clock)
		return;
	clock->scope = attributes->scope;
	clock->type = attributes->type;
	if (attributes->ticks_per_second > 0)
		clock->ns_per_tick = (double)NS_PER_S / (double)attributes->ticks_per_second;
}

void torsh_nvtx_time_source(void *domain, uint64_t id, int64_t (*read)(void *data), void *data)
{
	struct clock *clock = need_clock(domain, id);

	if (!clock || !read)
		return;
	clock->read = read;
	clock->data = data;
	add_point(clock, read_point(clock));
}

static bool convert(struct clock *clock, const int64_t *at, uint64_t *at_ns)
{
	double slope = clock->ns_per_tick;
	struct point point;
	uint32_t n = last_point(clock, &point);

	if (n && clock->read) {
		point = read_point(clock);
		n++;
	}
	if (slope <= 0 && n > 1 && point.at != clock->first.at)
		slope = (double)(point.at_ns - clock->first.at_ns) /
			(double)(point.at - clock->first.at);
	if (!n || slope <= 0)
		return false;
	for (int i = 0; i < 2; i++)
		at_ns[i] = (uint64_t)(point.at_ns + (int64_t)((double)(at[i] - point.at) * slope));
	return true;
}

bool torsh_nvtx_times(void *domain, uint64_t id, uint64_t scope, const int64_t at[2],
		      uint64_t at_ns[2])
{
	struct clock *clock = id ? find_clock(domain, id) : NULL;
	clockid_t of_system;
	int64_t offset = 0;

	for (size_t i = 0; !id && scope && i < N_CLOCKS; i++)
		if (clocks[i].scope == scope)
			clock = &clocks[i];
	if (clock && (clock->read || clock->n_points))
		return convert(clock, at, at_ns);
	/* A time domain of the program's without a type is a clock about which nothing is known. */
	if ((clock && clock->type == NVTX_CLOCK_NONE) || (!clock && id >= NVTX_TIME_DOMAIN_FIRST) ||
	    !is_system_clock(clock ? clock->type : id, &of_system))
		return false;
	if (of_system != CLOCK_MONOTONIC)
		offset = torsh_nvtx_now() - read_clock(of_system);
	at_ns[0] = (uint64_t)(at[0] + offset);
	at_ns[1] = (uint64_t)(at[1] + offset);
	return true;
}

void torsh_nvtx_time_sync(void *domain, uint64_t one, uint64_t other, int64_t at_one,
			  int64_t at_other, double slope)
{
	int64_t one_twice[2] = {at_one, at_one}, other_twice[2] = {at_other, at_other};
	struct clock *clock;
	uint64_t at_ns[2];

	if (torsh_nvtx_times(domain, other, 0, other_twice, at_ns)) {
		clock = need_clock(domain, one);
	} else if (!slope && torsh_nvtx_times(domain, one, 0, one_twice, at_ns)) {
		clock = need_clock(domain, other);
		at_one = at_other;
	} else {
		return;
	}
	if (clock && slope > 0)
		clock->ns_per_tick = slope;
	if (clock)
		add_point(clock, (struct point){at_one, (int64_t)at_ns[0]});
}
