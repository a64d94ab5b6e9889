/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/device/launches.h"

#include <stdlib.h>

#include "tools/base/die.h"

#define SLOTS_MIN 16u

void torsh_launches_create(struct launches *launches)
{
	*launches = (struct launches){.n_slots = SLOTS_MIN};
	launches->slots = torsh_need_items(NULL, 0, SLOTS_MIN, sizeof(*launches->slots));
}

void torsh_launches_destroy(struct launches *launches)
{
	free(launches->slots);
}

static size_t home_of(const struct launches *launches, uint32_t correlation)
{
	uint64_t hash = correlation * UINT64_C(0x9e3779b97f4a7c15);

	return (size_t)(hash >> 32) & (launches->n_slots - 1);
}

static size_t next_of(const struct launches *launches, size_t i)
{
	return (i + 1) & (launches->n_slots - 1);
}

static struct launch_waiting *slot_of(const struct launches *launches, uint32_t correlation)
{
	size_t i = home_of(launches, correlation);

	while (launches->slots[i].launch.correlation &&
	       launches->slots[i].launch.correlation != correlation)
		i = next_of(launches, i);
	return &launches->slots[i];
}

struct launch_waiting *torsh_launches_find(const struct launches *launches, uint32_t correlation)
{
	struct launch_waiting *slot = slot_of(launches, correlation);

	return slot->launch.correlation ? slot : NULL;
}

static void double_slots(struct launches *launches)
{
	struct launch_waiting *old = launches->slots;
	size_t n_old = launches->n_slots;

	launches->n_slots *= 2;
	launches->slots = torsh_need_items(NULL, 0, launches->n_slots, sizeof(*launches->slots));
	for (size_t i = 0; i < n_old; i++) {
		if (old[i].launch.correlation)
			*slot_of(launches, old[i].launch.correlation) = old[i];
	}
	free(old);
}

void torsh_launches_add(struct launches *launches, const struct device_launch *launch,
			uint32_t n_awaited)
{
	struct launch_waiting *slot;

	if (launches->n >= launches->n_slots / 2)
		double_slots(launches);
	slot = slot_of(launches, launch->correlation);
	if (slot->launch.correlation)
		return;
	*slot = (struct launch_waiting){.launch = *launch, .n_awaited = n_awaited};
	launches->n++;
}

/* Returns whether slot i is in (from, to], cyclically. */
static bool is_between(size_t from, size_t i, size_t to)
{
	return from <= to ? from < i && i <= to : from < i || i <= to;
}

/* Later entries of the probe sequence move up, so that no search ends too early. */
void torsh_launches_remove(struct launches *launches, struct launch_waiting *waiting)
{
	size_t hole = (size_t)(waiting - launches->slots);

	launches->n--;
	for (size_t i = next_of(launches, hole); launches->slots[i].launch.correlation;
	     i = next_of(launches, i)) {
		if (is_between(hole, home_of(launches, launches->slots[i].launch.correlation), i))
			continue;
		launches->slots[hole] = launches->slots[i];
		hole = i;
	}
	launches->slots[hole].launch.correlation = 0;
}
