/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/check/check_devices.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/device/memory/device_shared.h"
#include "tools/memory/leaks/leaks.h"
#include "tools/report/device_report.h"

#define SAY(figure, ...) snprintf((figure)->reason, sizeof((figure)->reason), __VA_ARGS__)

static const char *label_or(const struct recorded_process *process, uint32_t label,
			    const char *otherwise)
{
	const char *text = torsh_timeline_label(process, label);

	return text ? text : otherwise;
}

/* Store the higher of two values; of equal ones the first. */
static void take_higher(struct device_figure *figure, uint64_t value, const char *device)
{
	if (*figure->device && value <= figure->value)
		return;
	figure->value = value;
	snprintf(figure->device, sizeof(figure->device), "%s", device);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/*
 * Returns true if the budget covers the memory. Without a name: the program's own memory, except
 * registered and imported memory.
 */
static bool is_asked(const struct device_scope *scope, const char *device)
{
	char name[DEVICE_SCOPE_NAME_BYTES];

	return device ? strcmp(torsh_device_scope_name(scope, name), device) == 0
		      : torsh_device_is_joint(scope);
}

/*
 * Returns whether the process used CUDA in a way that recorded no memory. A process that only
 * loaded the CUDA runtime made no launch.
 */
static bool is_blind(const struct device_process *process, const struct prepass_process *of)
{
	if (!process->has_mode || process->n_places)
		return false;
	return process->mode.mode == DEVICE_HOST_ONLY ? of->work.n_launches != 0
						      : process->process->has_memory_left_out;
}

static bool has_device(const struct device_reading *devices, const char *device)
{
	for (size_t i = 0; i < devices->memory.n; i++) {
		const struct device_list *list = &devices->prepass.items[i].devices;

		if (torsh_device_place(&devices->memory.items[i], device) != DEVICE_NO_PLACE)
			return true;
		for (size_t k = 0; k < list->n; k++) {
			struct device_scope scope = {.kind = SCOPE_CUDA,
						     .device = list->items[k].device};

			if (is_asked(&scope, device))
				return true;
		}
	}
	return false;
}

/* Store why device memory is unknown, or "". */
static void find_reason(struct device_figure *figure, const struct device_reading *devices,
			const char *device)
{
	const struct memory_of_devices *memory = &devices->memory;
	bool is_seen = false;

	for (size_t i = 0; i < memory->n; i++) {
		const struct device_process *process = &memory->items[i];

		if (is_blind(process, &devices->prepass.items[i])) {
			SAY(figure, "memory of devices was not recorded of pid %" PRIu32 ": %s",
			    process->process->pid,
			    label_or(process->process, process->mode.reason,
				     "TORSH_PROFILER_PROFILE_MEMORY=0"));
			return;
		}
		is_seen = is_seen || process->n_places ||
			  (process->has_mode && process->mode.mode != DEVICE_HOST_ONLY);
	}
	if (!is_seen || (device && !has_device(devices, device)))
		torsh_device_missing(memory, device, figure->reason, sizeof(figure->reason));
}

static void add_place(struct device_figures *figures, const struct device_process *process,
		      size_t place, const char *device)
{
	const struct device_scope *scope = &process->blocks.scopes[place];
	char name[DEVICE_SCOPE_NAME_BYTES];

	figures->refused.value += process->places[place].refusals.n;
	if (device || scope->kind == SCOPE_CUDA)
		take_higher(&figures->peak, process->places[place].peak_bytes,
			    torsh_device_scope_name(scope, name));
}

/* Add the sum of the processes that share a device, at their common peak. */
static void add_shared(struct device_figure *peak, const struct memory_of_devices *memory,
		       const char *device)
{
	struct shared_devices shared;
	char name[DEVICE_SCOPE_NAME_BYTES];

	torsh_shared_devices_find(&shared, memory);
	for (size_t i = 0; i < shared.n; i++) {
		const struct device_part *first = shared.items[i].parts;

		if (torsh_shared_device_is_called(&shared.items[i], device))
			take_higher(peak, shared.items[i].peak_bytes,
				    device ? device
					   : torsh_device_scope_name(
						     &first->process->blocks.scopes[first->place],
						     name));
	}
	torsh_shared_devices_free(&shared);
}

static uint64_t leaked_bytes(const struct memory_of_devices *memory, const struct reading *reading,
			     struct read_options *options, const char *device)
{
	struct leaks leaks = {.devices = memory, .device = device};
	uint64_t bytes;

	torsh_leaks_find(&leaks, reading->processes, reading->n_processes, reading->symbols,
			 &options->suppress);
	bytes = leaks.bytes;
	torsh_leaks_free(&leaks);
	return bytes;
}

/* Returns whether an earlier process has a place of that name. */
static bool was_before(const struct memory_of_devices *memory, size_t process, const char *name)
{
	while (process--) {
		if (torsh_device_place(&memory->items[process], name) != DEVICE_NO_PLACE)
			return true;
	}
	return false;
}

void torsh_check_devices_memory(struct device_figures *figures, const struct reading *reading,
				struct read_options *options, const char *device)
{
	struct device_reading devices;
	const struct memory_of_devices *memory = &devices.memory;
	char name[DEVICE_SCOPE_NAME_BYTES];

	torsh_device_reading_open(&devices, reading);
	find_reason(&figures->peak, &devices, device);
	figures->leak = figures->refused = figures->peak;
	figures->peak.is_known = figures->leak.is_known = figures->refused.is_known =
		!*figures->peak.reason;
	for (size_t i = 0; i < memory->n && figures->peak.is_known; i++) {
		for (size_t k = 0; k < memory->items[i].n_places; k++) {
			const struct device_scope *scope = &memory->items[i].blocks.scopes[k];

			if (!is_asked(scope, device))
				continue;
			add_place(figures, &memory->items[i], k, device);
			if (!was_before(memory, i, torsh_device_scope_name(scope, name)))
				figures->leak.value += leaked_bytes(memory, reading, options, name);
		}
	}
	if (figures->peak.is_known)
		add_shared(&figures->peak, memory, device);
	torsh_device_reading_close(&devices);
}

/* ---- time ------------------------------------------------------------------------------------ */

struct device_time_of {
	uint32_t device;
	uint64_t ns;
};

struct timing {
	const struct reading *reading;
	struct device_time_of *items; /* by device */
	size_t n, n_room;
	/* by process, current; DEVICE_HOST_ONLY until reported */
	struct event_device_mode *modes;
	struct device_figure *figure;
	bool is_seen; /* device activity was recorded */
};

static void add_time(struct timing *timing, uint32_t device, uint64_t ns)
{
	size_t i = 0;

	while (i < timing->n && timing->items[i].device != device)
		i++;
	if (i == timing->n) {
		timing->items = torsh_array_reserve(timing->items, timing->n, &timing->n_room,
						    sizeof(*timing->items));
		timing->items[timing->n++] = (struct device_time_of){.device = device};
	}
	timing->items[i].ns += ns;
}

static void see_losses(struct device_figure *figure, uint32_t pid,
		       const struct event_device_loss *losses)
{
	uint64_t n = losses->dropped + losses->without_room + losses->invalid;
	char text[SIZE_TEXT_BYTES];

	if (n)
		SAY(figure, "%s of devices %s missing of pid %" PRIu32,
		    torsh_size_counted(n, "record", text), n == 1 ? "is" : "are", pid);
}

static void see_untimed(struct device_figure *figure, const struct recorded_process *process,
			uint32_t reason)
{
	SAY(figure, "work of pid %" PRIu32 " has no times: %s", process->pid,
	    label_or(process, reason, "unknown reason"));
}

static int see_timed(void *context, const struct recorded_process *process,
		     const struct timeline_event *told)
{
	struct timing *timing = context;
	const struct event *event = &told->event;
	struct event_device_mode *mode = timing->modes;
	struct activity_record record;
	size_t i = 0;

	while (i < timing->reading->n_processes && timing->reading->processes[i] != process)
		i++;
	if (i == timing->reading->n_processes)
		return 0;
	mode += i;
	if (event->id == EVENT_DEVICE_MODE) {
		*mode = event->device_mode;
		timing->is_seen = timing->is_seen || mode->mode != DEVICE_HOST_ONLY;
	}
	if (event->id == EVENT_DEVICE_LOSS)
		see_losses(timing->figure, process->pid, &event->device_loss);
	if (event->id == EVENT_LAUNCH && mode->mode == DEVICE_HOST_ONLY)
		see_untimed(timing->figure, process, mode->reason);
	if (torsh_activity_untimed(event, &record))
		see_untimed(timing->figure, process, event->submission.reason);
	if (torsh_activity_record(event, &record))
		add_time(timing, record.device, record.duration_ns);
	if (event->id == EVENT_DEVICE)
		add_time(timing, event->device.device, 0);
	return 0;
}

void torsh_check_devices_time(struct device_figures *figures, const struct reading *reading,
			      const char *device)
{
	struct device_figure *figure = &figures->time_ns;
	struct timing timing = {.reading = reading, .figure = figure};
	int rc;

	timing.modes = torsh_need_items(NULL, 0, reading->n_processes, sizeof(*timing.modes));
	rc = torsh_timeline_visit(reading->recording, see_timed, &timing);
	if (rc < 0)
		torsh_die("can't read the timeline of %s: %s", reading->recording->path,
			  strerror(-rc));
	for (size_t i = 0; i < timing.n; i++) {
		const struct device_scope scope = {.kind = SCOPE_CUDA,
						   .device = timing.items[i].device};
		char name[DEVICE_SCOPE_NAME_BYTES];

		if (is_asked(&scope, device))
			take_higher(figure, timing.items[i].ns,
				    torsh_device_scope_name(&scope, name));
	}
	if (!*figure->reason && (device ? !*figure->device : !timing.is_seen && !timing.n))
		SAY(figure, "%s has no work of %s", reading->recording->path,
		    device ? device : "devices");
	figure->is_known = !*figure->reason;
	if (!figure->is_known)
		*figure->device = '\0';
	free(timing.modes);
	free(timing.items);
}
