/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/device/owners/driver_figure.h"

#include <inttypes.h>
#include <stdio.h>

#define NAME_BYTES 1024

static uint64_t used_bytes(const struct device_room *room)
{
	return room->said.total_bytes - room->said.free_bytes;
}

static uint64_t apart_ns(const struct device_room *room, uint64_t at_ns)
{
	return room->at_ns > at_ns ? room->at_ns - at_ns : at_ns - room->at_ns;
}

/* Returns the nearest report with the same memory alive, or else with as much; NULL: none. */
static const struct device_room *find_room(const struct device_location *place,
					   const struct device_scope *scope, uint64_t at_ns)
{
	const struct device_room *same = NULL, *equal = NULL;

	for (size_t i = 0; i < place->n_rooms; i++) {
		const struct device_room *room = &place->rooms[i];

		if (room->live_bytes != scope->bytes)
			continue;
		if (room->n_changes == scope->allocs + scope->frees &&
		    (!same || apart_ns(room, at_ns) < apart_ns(same, at_ns)))
			same = room;
		if (!equal || apart_ns(room, at_ns) < apart_ns(equal, at_ns))
			equal = room;
	}
	return same ? same : equal;
}

static uint64_t beyond(uint64_t reserved, uint64_t used)
{
	return reserved > used ? reserved - used : 0;
}

static uint64_t free_in_pools(const struct event_device_room *said)
{
	return said->has_pools ? beyond(said->pools_reserved, said->pools_used) : 0;
}

static uint64_t free_of_graphs(const struct event_device_room *said)
{
	return said->has_graphs ? beyond(said->graphs_reserved, said->graphs_used) : 0;
}

static uint64_t level_at(const struct device_location *place, uint64_t at_ns)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < place->n_levels && place->levels[i].at_ns <= at_ns; i++)
		bytes = place->levels[i].bytes;
	return bytes;
}

static bool is_own(const struct device_part *part, const struct owners_request *request)
{
	return part->process == request->process && part->place == request->place;
}

/* Returns the device that the process shares with others; NULL: with none of the session. */
static const struct shared_device *find_shared(const struct shared_devices *shared,
					       const struct owners_request *request)
{
	for (size_t i = 0; i < shared->n; i++) {
		for (size_t k = 0; k < shared->items[i].n_parts; k++) {
			if (is_own(&shared->items[i].parts[k], request))
				return &shared->items[i];
		}
	}
	return NULL;
}

/* Returns what others of the session had at that time; owners: put them there, unless NULL. */
static uint64_t sum_others(const struct shared_device *device, const struct owners_request *request,
			   uint64_t at_ns, struct device_owners *owners)
{
	uint64_t sum = 0;

	for (size_t i = 0; device && i < device->n_parts; i++) {
		const struct device_part *part = &device->parts[i];
		const struct recorded_process *process = part->process->process;
		uint64_t bytes = level_at(&part->process->places[part->place], at_ns);
		char name[NAME_BYTES];

		if (is_own(part, request))
			continue;
		sum += bytes;
		snprintf(name, sizeof(name), "%s (pid %" PRIu32 ")",
			 torsh_recording_program_name(process), process->pid);
		if (owners)
			torsh_device_owners_put(owners, OWNER_OTHER_PROCESSES, name, (int64_t)bytes,
						0);
	}
	return sum;
}

static void put_room(struct device_owners *owners, const struct owners_request *request,
		     const struct device_room *room)
{
	const struct device_room *first = request->process->places[request->place].rooms;
	const struct shared_device *device;
	struct shared_devices shared;
	uint64_t known_bytes;

	owners->has_driver = true;
	owners->driver_bytes = used_bytes(room);
	owners->driver_ns = room->at_ns;
	torsh_device_owners_put(owners, OWNER_POOL, "memory pools",
				(int64_t)free_in_pools(&room->said), 0);
	torsh_device_owners_put(owners, OWNER_POOL, "graph memory",
				(int64_t)free_of_graphs(&room->said), 0);
	torsh_shared_devices_find(&shared, request->memory);
	device = find_shared(&shared, request);
	sum_others(device, request, room->at_ns, owners);
	known_bytes = first->live_bytes + free_in_pools(&first->said) +
		      free_of_graphs(&first->said) +
		      sum_others(device, request, first->at_ns, NULL);
	if (used_bytes(first) > known_bytes)
		torsh_device_owners_put(owners, OWNER_CONTEXT, NULL,
					(int64_t)(used_bytes(first) - known_bytes), 0);
	torsh_shared_devices_free(&shared);
}

void torsh_driver_figure_put(struct device_owners *owners, const struct owners_request *request,
			     const struct device_scope *scope)
{
	const struct device_location *place = &request->process->places[request->place];
	const struct device_room *room = scope ? find_room(place, scope, request->at.at_ns) : NULL;

	if (room)
		put_room(owners, request, room);
	else if (!place->n_rooms)
		owners->driver_reason = "the driver was not queried while the device was in use";
	else
		owners->driver_reason =
			"the driver was not queried while so much of the device was allocated";
}
