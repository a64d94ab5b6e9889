/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/device/owners/driver_figure.h"

#include "tools/device/owners/listed_users.h"
#include "tools/device/owners/loaded_code.h"

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

static void put_code(struct device_owners *owners, const struct owners_request *request,
		     const struct device_room *room, const struct loaded_code *code)
{
	for (size_t i = 0; i < code->n; i++) {
		const struct loaded_module *module = &code->items[i];

		/* The driver's figure may be an earlier one, with as much allocated. */
		if (module->at_ns > room->at_ns)
			continue;
		owners->n_modules_unmeasured += !module->is_measured;
		torsh_device_owners_put(owners, OWNER_CODE,
					torsh_loaded_module_name(request->process->process,
								 module->stack, request->symbols),
					(int64_t)module->bytes, 1);
	}
}

static void put_room(struct device_owners *owners, const struct owners_request *request,
		     const struct device_room *room, const struct loaded_code *code)
{
	const struct device_room *first = request->process->places[request->place].rooms;
	uint64_t known_bytes;

	owners->has_driver = true;
	owners->driver_bytes = used_bytes(room);
	owners->driver_ns = room->at_ns;
	torsh_device_owners_put(owners, OWNER_POOL, "memory pools",
				(int64_t)free_in_pools(&room->said), 0);
	torsh_device_owners_put(owners, OWNER_POOL, "graph memory",
				(int64_t)free_of_graphs(&room->said), 0);
	put_code(owners, request, room, code);
	torsh_device_users_sum(request, room->at_ns, owners);
	known_bytes = first->live_bytes + free_in_pools(&first->said) +
		      free_of_graphs(&first->said) +
		      torsh_device_users_sum(request, first->at_ns, NULL) +
		      torsh_loaded_code_bytes(code, first->at_ns);
	if (used_bytes(first) > known_bytes)
		torsh_device_owners_put(owners, OWNER_CONTEXT, NULL,
					(int64_t)(used_bytes(first) - known_bytes), 0);
}

void torsh_driver_figure_put(struct device_owners *owners, const struct owners_request *request,
			     const struct device_scope *scope, const struct loaded_code *code)
{
	const struct device_location *place = &request->process->places[request->place];
	const struct device_room *room = scope ? find_room(place, scope, request->at.at_ns) : NULL;

	if (room)
		put_room(owners, request, room, code);
	else if (!place->n_rooms)
		owners->driver_reason = "the driver was not queried while the device was in use";
	else
		owners->driver_reason =
			"the driver was not queried while so much of the device was allocated";
}
