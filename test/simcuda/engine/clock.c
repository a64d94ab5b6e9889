/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The clock of the devices, real or virtual. */
#include "test/simcuda/engine/clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "test/simcuda/engine/config.h"

enum { VIRTUAL_BEGIN_NS = 1000000000, MAX_STEPS = 16 };

/* 2023-11-14: like a wall clock's, and the same in every run. */
static const int64_t VIRTUAL_WALL_OFFSET = 1700000000000000000;

static _Atomic uint64_t virtual_now = VIRTUAL_BEGIN_NS;
static int64_t wall_offset;
static uint64_t first_ns;
static struct {
	uint64_t at_ns;
	int64_t by_ns;
} steps[MAX_STEPS];
static int n_steps;

static uint64_t read_clock(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t sim_now(void)
{
	if (sim_config()->is_virtual_clock)
		return atomic_load_explicit(&virtual_now, memory_order_relaxed);
	return read_clock(CLOCK_MONOTONIC);
}

void sim_clock_reach(uint64_t t_ns)
{
	uint64_t now = atomic_load(&virtual_now);

	if (!sim_config()->is_virtual_clock)
		return;
	while (now < t_ns && !atomic_compare_exchange_weak(&virtual_now, &now, t_ns))
		;
}

void sim_clock_spend(uint64_t ns)
{
	if (sim_config()->is_virtual_clock)
		atomic_fetch_add_explicit(&virtual_now, ns, memory_order_relaxed);
}

static void read_steps(const char *text)
{
	while (text && *text && n_steps < MAX_STEPS) {
		char *end;

		steps[n_steps].at_ns = strtoull(text, &end, 10);
		steps[n_steps].by_ns = *end == ':' ? strtoll(end + 1, &end, 10) : 0;
		n_steps++;
		text = *end == ',' ? end + 1 : NULL;
	}
}

static void begin(void)
{
	first_ns = sim_now();
	wall_offset = sim_config()->is_virtual_clock
			      ? VIRTUAL_WALL_OFFSET
			      : (int64_t)(read_clock(CLOCK_REALTIME) - read_clock(CLOCK_MONOTONIC));
	read_steps(sim_config()->clock_steps);
}

int64_t sim_wall_offset(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, begin);
	return wall_offset;
}

uint64_t sim_wall_of(uint64_t t_ns)
{
	int64_t wall = (int64_t)t_ns + sim_wall_offset();
	int64_t age = (int64_t)(t_ns - first_ns);

	wall += (int64_t)((__int128)age * sim_config()->skew_ppb / 1000000000);
	for (int i = 0; i < n_steps; i++)
		if (age >= (int64_t)steps[i].at_ns)
			wall += steps[i].by_ns;
	return (uint64_t)wall;
}
