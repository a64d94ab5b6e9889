/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/device/memory/device_shared.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

/* ---- which are the same ---------------------------------------------------------------------- */

static uint32_t number_of(const struct device_part *part)
{
	return part->process->blocks.scopes[part->place].device;
}

static const char *uuid_of(const struct memory_of_devices *memory, const struct device_part *part)
{
	const struct recorded_process *process = part->process->process;
	const struct prepass_process *of = torsh_prepass_of(memory->prepass, process);
	const struct event_device *told =
		of ? torsh_device_list_find(&of->devices, number_of(part)) : NULL;

	return told ? torsh_timeline_label(process, told->uuid) : NULL;
}

static bool is_same(const struct shared_device *device, const char *uuid,
		    const struct device_part *part)
{
	if (device->uuid && uuid)
		return strcmp(device->uuid, uuid) == 0;
	for (size_t i = 0; i < device->n_parts; i++) {
		if (number_of(&device->parts[i]) == number_of(part))
			return true;
	}
	return false;
}

static void add_part(struct shared_devices *shared, const struct memory_of_devices *memory,
		     const struct device_part *part)
{
	const char *uuid = uuid_of(memory, part);
	struct shared_device *device;
	size_t i = 0;

	while (i < shared->n && !is_same(&shared->items[i], uuid, part))
		i++;
	if (i == shared->n) {
		shared->items = torsh_array_reserve(shared->items, shared->n, &shared->n_room,
						    sizeof(*shared->items));
		shared->items[shared->n++] = (struct shared_device){.uuid = uuid};
	}
	device = &shared->items[i];
	device->parts = torsh_array_reserve(device->parts, device->n_parts, &device->parts_room,
					    sizeof(*device->parts));
	device->parts[device->n_parts++] = *part;
}

/* ---- when they held most --------------------------------------------------------------------- */

struct cursor {
	const struct device_location *place;
	size_t next; /* index of its next level */
	uint64_t bytes; /* current */
};

/*
 * Of changes at the same time a decrease comes first, so that the sum never exceeds the true one.
 */
static bool is_before(const struct cursor *a, const struct cursor *b)
{
	const struct device_level *x = &a->place->levels[a->next], *y = &b->place->levels[b->next];

	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns;
	return x->bytes < a->bytes && y->bytes >= b->bytes;
}

/* Returns the process with the next change; NULL: none is left. */
static struct cursor *next_change(struct cursor *cursors, size_t n)
{
	struct cursor *first = NULL;

	for (size_t i = 0; i < n; i++) {
		if (cursors[i].next < cursors[i].place->n_levels &&
		    (!first || is_before(&cursors[i], first)))
			first = &cursors[i];
	}
	return first;
}

static void find_peak(struct shared_device *device)
{
	struct cursor *cursors = torsh_need_items(NULL, 0, device->n_parts, sizeof(*cursors)),
		      *cursor;
	uint64_t sum = 0;

	for (size_t i = 0; i < device->n_parts; i++)
		cursors[i].place = &device->parts[i].process->places[device->parts[i].place];
	while ((cursor = next_change(cursors, device->n_parts))) {
		const struct device_level *level = &cursor->place->levels[cursor->next++];

		sum += level->bytes - cursor->bytes;
		cursor->bytes = level->bytes;
		if (sum <= device->peak_bytes)
			continue;
		device->peak_bytes = sum;
		device->peak_ns = level->at_ns;
		for (size_t i = 0; i < device->n_parts; i++)
			device->parts[i].bytes = cursors[i].bytes;
	}
	free(cursors);
}

/*
 * ----------------------------------------------------------------------------------------------
 */

/* Keep places that several processes share. If a part has no UUID, the whole has none. */
static void keep_shared(struct shared_devices *shared, const struct memory_of_devices *memory)
{
	size_t n = 0;

	for (size_t i = 0; i < shared->n; i++) {
		struct shared_device *device = &shared->items[i];

		if (device->n_parts < 2) {
			free(device->parts);
			continue;
		}
		for (size_t k = 0; k < device->n_parts && device->uuid; k++)
			device->uuid = uuid_of(memory, &device->parts[k]);
		find_peak(device);
		shared->items[n++] = *device;
	}
	shared->n = n;
}

void torsh_shared_devices_find(struct shared_devices *shared,
			       const struct memory_of_devices *memory)
{
	*shared = (struct shared_devices){0};
	for (size_t i = 0; i < memory->n; i++) {
		const struct device_process *process = &memory->items[i];

		for (size_t k = 0; k < process->n_places; k++) {
			struct device_part part = {.process = process, .place = k};

			if (process->places[k].n_levels && number_of(&part) != DEVICE_NOT_KNOWN)
				add_part(shared, memory, &part);
		}
	}
	keep_shared(shared, memory);
}

void torsh_shared_devices_free(struct shared_devices *shared)
{
	for (size_t i = 0; i < shared->n; i++)
		free(shared->items[i].parts);
	free(shared->items);
	*shared = (struct shared_devices){0};
}

bool torsh_shared_device_is_called(const struct shared_device *device, const char *name)
{
	char buffer[DEVICE_SCOPE_NAME_BYTES];

	for (size_t i = 0; i < device->n_parts; i++) {
		const struct device_part *part = &device->parts[i];

		if (!name || strcmp(torsh_device_scope_name(
					    &part->process->blocks.scopes[part->place], buffer),
				    name) == 0)
			return true;
	}
	return false;
}
