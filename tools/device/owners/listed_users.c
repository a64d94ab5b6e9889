/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/device/owners/listed_users.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/device/owners/driver_figure.h"

#define NAME_BYTES 1024

/* ---- looks ----------------------------------------------------------------------------------- */

static const char *uuid_of(const struct owners_request *request)
{
	const struct recorded_process *process = request->process->process;
	const struct prepass_process *of = torsh_prepass_of(request->memory->prepass, process);
	const struct event_device *told =
		of ? torsh_device_list_find(&of->devices,
					    request->process->blocks.scopes[request->place].device)
		   : NULL;

	return told ? torsh_timeline_label(process, told->uuid) : NULL;
}

static const struct recorded_device_user *find_user(const struct recorded_device_use *use,
						    uint32_t pid)
{
	for (size_t i = 0; i < use->n_users; i++) {
		if (use->users[i].pid == pid)
			return &use->users[i];
	}
	return NULL;
}

static uint64_t apart_ns(const struct recorded_device_use *use, uint64_t at_ns)
{
	if (at_ns >= use->begin_ns && at_ns <= use->end_ns)
		return 0;
	return at_ns < use->begin_ns ? use->begin_ns - at_ns : at_ns - use->end_ns;
}

/* Why a look of the device does not tell the processes apart; NULL: it does. */
static const char *problem_of(const struct recorded_device_use *use, uint32_t own_pid)
{
	const struct recorded_device_user *own = find_user(use, own_pid);

	if (use->problem)
		return use->problem;
	if (!own)
		return "the driver's list of processes lacks this one: it has pids of another "
		       "namespace, or was made after its end";
	for (size_t i = 0; i < use->n_users; i++) {
		if (use->users[i].bytes == DEVICE_USE_UNKNOWN)
			return "the driver does not tell how much each process uses";
	}
	return NULL;
}

const struct recorded_device_use *torsh_device_users_at(const struct owners_request *request,
							uint64_t at_ns, const char **reason)
{
	const struct recording *recording = request->memory->recording;
	const struct recorded_device_use *nearest = NULL;
	const char *uuid = uuid_of(request);

	*reason = uuid ? "nobody asked who uses the device"
		       : "the device's UUID is unknown, by which it is found in the driver's lists";
	for (size_t i = 0; i < recording->n_device_uses; i++) {
		const struct recorded_device_use *use = &recording->device_uses[i];
		const char *problem = problem_of(use, request->process->process->pid);

		if (use->uuid && (!uuid || strcmp(uuid, use->uuid) != 0))
			continue;
		if (problem)
			*reason = problem;
		else if (!nearest || apart_ns(use, at_ns) < apart_ns(nearest, at_ns))
			nearest = use;
	}
	if (nearest)
		*reason = NULL;
	return nearest;
}

/* ---- recorded processes ---------------------------------------------------------------------- */

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

/* What NVML counts beyond what the process had allocated then: its context and code. */
static uint64_t beyond_level(const struct device_location *place,
			     const struct recorded_device_use *use, uint32_t pid)
{
	const struct recorded_device_user *user = use ? find_user(use, pid) : NULL;
	uint64_t level = use ? level_at(place, use->begin_ns) : 0;

	/* What changed during the look is neither before nor after it. */
	if (!user || level != level_at(place, use->end_ns) || user->bytes < level)
		return 0;
	return user->bytes - level;
}

static void put(struct device_owners *owners, const char *program, uint32_t pid, uint64_t bytes)
{
	char name[NAME_BYTES];

	if (!owners)
		return;
	snprintf(name, sizeof(name), "%s (pid %" PRIu32 ")", program ? program : "?", pid);
	torsh_device_owners_put(owners, OWNER_OTHER_PROCESSES, name, (int64_t)bytes, 0);
}

static uint64_t sum_recorded(const struct shared_device *device,
			     const struct owners_request *request,
			     const struct recorded_device_use *use, uint64_t at_ns,
			     struct device_owners *owners)
{
	uint64_t sum = 0;

	for (size_t i = 0; device && i < device->n_parts; i++) {
		const struct device_part *part = &device->parts[i];
		const struct recorded_process *process = part->process->process;
		const struct device_location *place = &part->process->places[part->place];
		bool is_alive = at_ns >= process->start_ns &&
				!(process->has_end_ns && at_ns > process->end_ns);
		uint64_t bytes = level_at(place, at_ns);

		if (is_own(part, request))
			continue;
		if (bytes || is_alive)
			bytes += beyond_level(place, use, process->pid);
		sum += bytes;
		put(owners, torsh_recording_program_name(process), process->pid, bytes);
	}
	return sum;
}

static bool is_recorded(const struct shared_device *device, uint32_t pid)
{
	for (size_t i = 0; device && i < device->n_parts; i++) {
		if (device->parts[i].process->process->pid == pid)
			return true;
	}
	return false;
}

/* ---------------------------------------------------------------------------------------------- */

uint64_t torsh_device_users_sum(const struct owners_request *request, uint64_t at_ns,
				struct device_owners *owners)
{
	const char *reason;
	const struct recorded_device_use *use = torsh_device_users_at(request, at_ns, &reason);
	const struct shared_device *device;
	struct shared_devices shared;
	uint64_t sum;

	torsh_shared_devices_find(&shared, request->memory);
	device = find_shared(&shared, request);
	sum = sum_recorded(device, request, use, at_ns, owners);
	for (size_t i = 0; use && i < use->n_users; i++) {
		const struct recorded_device_user *user = &use->users[i];

		if (user->pid == request->process->process->pid || is_recorded(device, user->pid))
			continue;
		sum += user->bytes;
		put(owners, user->name, user->pid, user->bytes);
	}
	torsh_shared_devices_free(&shared);
	return sum;
}
