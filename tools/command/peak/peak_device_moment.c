/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh peak --device --at: a moment of the process other than its peak. */
#include <inttypes.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/command/peak/peak_view.h"
#include "tools/memory/moments.h"

struct mark_search {
	const struct recorded_process *process;
	const char *name;
	uint64_t at_ns;
};

/* Ends the pass at the first mark of that name. */
static int see_event(void *context, const struct recorded_process *process,
		     const struct timeline_event *event)
{
	struct mark_search *search = context;
	const char *name;

	if (process != search->process || event->event.id != EVENT_MARK)
		return 0;
	name = torsh_timeline_label(process, event->event.mark.name);
	if (!name || strcmp(name, search->name) != 0)
		return 0;
	search->at_ns = event->at_ns;
	return 1;
}

static uint64_t find_mark(const struct peak_view *view, const char *name)
{
	struct mark_search search = {.process = view->peak.process, .name = name};
	int rc = torsh_timeline_visit(view->reading->recording, see_event, &search);

	if (rc < 0)
		torsh_die("can't read the timeline of %s: %s", view->reading->recording->path,
			  strerror(-rc));
	if (!rc)
		torsh_die("%s has no mark \"%s\"; torsh regions lists the marks",
			  view->reading->recording->path, name);
	return search.at_ns;
}

static uint64_t find_step(const struct peak_view *view, uint64_t number)
{
	const struct prepass_process *of =
		torsh_prepass_of(&view->device.reading.prepass, view->peak.process);

	for (size_t i = 0; of && i < of->steps.n; i++) {
		if (of->steps.items[i].number == number)
			return of->steps.items[i].end_ns;
	}
	torsh_die("%s has no step %" PRIu64 "; torsh steps lists them",
		  view->reading->recording->path, number);
}

static uint64_t end_ns(const struct peak_view *view)
{
	const struct recorded_process *process = view->peak.process;
	const struct prepass_process *of = torsh_prepass_of(&view->device.reading.prepass, process);

	return process->has_end_ns ? process->end_ns : of ? of->last_ns : view->peak.at_ns;
}

void torsh_peak_device_moment(struct peak_view *view, const struct moment_request *request)
{
	struct device_view *device = &view->device;

	device->at.change = DEVICE_CHANGE_BY_TIME;
	switch (request->kind) {
	case MOMENT_OF_TIME:
		device->moment_kind = MEMORY_AT_TIME;
		device->at.at_ns = request->number;
		return;
	case MOMENT_OF_STEP:
		device->moment_kind = MEMORY_AT_STEP;
		device->at.at_ns = find_step(view, request->number);
		return;
	case MOMENT_OF_NAME:
		break;
	default:
		device->moment_kind = MEMORY_AT_PEAK;
		device->at = device->process->places[device->place].peak;
		return;
	}
	if (strcmp(request->name, torsh_memory_moment_names[MEMORY_AT_END]) == 0) {
		device->moment_kind = MEMORY_AT_END;
		device->at.at_ns = end_ns(view);
	} else if (strcmp(request->name, torsh_memory_moment_names[MEMORY_AT_START]) == 0) {
		device->moment_kind = MEMORY_AT_START;
		device->at.at_ns = view->peak.process->start_ns;
	} else if (strcmp(request->name, torsh_memory_moment_names[MEMORY_AT_PEAK]) == 0) {
		device->moment_kind = MEMORY_AT_PEAK;
		device->at = device->process->places[device->place].peak;
	} else {
		device->moment_kind = MEMORY_AT_MARK;
		device->at.at_ns = find_mark(view, request->name);
	}
}
