/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/ticks.h"

#include <time.h>

#define GUESS_NS_A_TICK 0.4
#define ENOUGH_NS 100000u /* less time between two readings says nothing */

uint64_t torsh_ticks_monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct reading {
	uint64_t ticks, ns;
	uint64_t took_ticks; /* between the two clocks: the less, the better */
};

static struct reading read_once(void)
{
	uint64_t before = torsh_ticks_counter(), ns = torsh_ticks_monotonic_ns();
	uint64_t took = torsh_ticks_counter() - before;

	return (struct reading){.ticks = before + took / 2, .ns = ns, .took_ticks = took};
}

/* Both clocks at one moment: the tightest of a few tries. */
static void read_both(uint64_t *ticks, uint64_t *ns)
{
	struct reading best = read_once();

	for (int i = 1; i < 5; i++) {
		struct reading next = read_once();

		if (next.took_ticks < best.took_ticks)
			best = next;
	}
	*ticks = best.ticks;
	*ns = best.ns;
}

void torsh_ticks_start(struct ticks_rate *rate)
{
	rate->ns_a_tick = GUESS_NS_A_TICK;
	read_both(&rate->first_ticks, &rate->first_ns);
}

void torsh_ticks_measure(struct ticks_rate *rate)
{
	uint64_t ticks, ns;

	read_both(&ticks, &ns);
	if (ns - rate->first_ns > ENOUGH_NS && ticks > rate->first_ticks)
		rate->ns_a_tick = (double)(ns - rate->first_ns) / (double)(ticks - rate->first_ticks);
}
