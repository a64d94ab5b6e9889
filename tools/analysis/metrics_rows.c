/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Device activities and host calls, summed by kind. */
#include <stdlib.h>
#include <string.h>

#include "tools/analysis/metrics.h"
#include "tools/base/containers/array.h"

#define OBSERVED_DEVICES_MAX 64u /* per process; more are treated as damage */

/* ---- rows by their keys ---------------------------------------------------------------------- */

/* Returns the row of a key; n_rows if it is new, and then it is entered as such. */
static size_t find_row(struct hash_map *map, const void *key, size_t n_key, size_t n_rows)
{
	return torsh_hash_map_put(map, key, n_key, n_rows)->value;
}

/* ---- work of devices ------------------------------------------------------------------------- */

struct metrics_device *torsh_metrics_device(struct metrics_process *of, uint32_t number)
{
	for (size_t i = 0; i < of->n_devices; i++) {
		if (of->devices[i].number == number)
			return &of->devices[i];
	}
	if (of->n_devices == OBSERVED_DEVICES_MAX)
		return NULL;
	of->devices = torsh_array_reserve(of->devices, of->n_devices, &of->devices_room,
					  sizeof(*of->devices));
	of->devices[of->n_devices].number = number;
	return &of->devices[of->n_devices++];
}

static void fill_work_key(struct work_key *key, const struct device_activity *activity,
			  const struct attribution *by)
{
	const struct event_kernel *kernel = &activity->event.kernel;

	memset(key, 0, sizeof(*key));
	key->what = activity->record.what;
	key->device = activity->record.device;
	key->site = by->site;
	key->stack = by->stack;
	if (activity->event.id != EVENT_KERNEL)
		return;
	key->name = activity->record.name;
	memcpy(key->grid, (uint32_t[]){kernel->grid_x, kernel->grid_y, kernel->grid_z},
	       sizeof(key->grid));
	memcpy(key->block, (uint32_t[]){kernel->block_x, kernel->block_y, kernel->block_z},
	       sizeof(key->block));
	key->registers = kernel->registers;
	key->static_bytes = kernel->static_shared_bytes;
	key->dynamic_bytes = kernel->dynamic_shared_bytes;
}

static struct metrics_work *find_work(struct metrics_process *of,
				      const struct device_activity *activity,
				      const struct attribution *by)
{
	struct metrics_work *work;
	struct work_key key;
	size_t i;

	fill_work_key(&key, activity, by);
	i = find_row(&of->known_work, &key, sizeof(key), of->n_work);
	if (i < of->n_work)
		return &of->work[i];
	of->work = torsh_array_reserve(of->work, of->n_work, &of->work_room, sizeof(*of->work));
	work = &of->work[of->n_work++];
	*work = (struct metrics_work){.key = key,
				      .operator_name = by->operator_name,
				      .is_attributed = !by->reason,
				      .is_of_graph = activity->record.graph};
	if (activity->event.id == EVENT_KERNEL) {
		const char *name = torsh_timeline_label(of->process, activity->record.name);

		work->kernel = activity->event.kernel;
		work->family = name ? torsh_attribution_family(name) : NULL;
	}
	return work;
}

/* By name, as HTA separates communication from computation. */
static bool is_communication(const struct device_activity *activity)
{
	const char *name = activity->record.what == DEVICE_KERNEL
				   ? torsh_timeline_label(activity->process, activity->record.name)
				   : NULL;

	return name && strncmp(name, "nccl", 4) == 0;
}

void torsh_metrics_stretch(struct metrics_device *device, const struct device_activity *activity)
{
	const struct activity_record *record = &activity->record;

	if (!record->duration_ns)
		return;
	torsh_stretches_add(&device->stretches, record->stream,
			    &(struct device_stretch){
				    .begin_ns = record->begin_ns,
				    .end_ns = record->begin_ns + record->duration_ns,
				    .asked_ns = torsh_activity_issued_ns(activity),
				    .is_communication = is_communication(activity),
			    });
}

static void add_host_call(struct metrics_process *of, const struct call_key *key, uint64_t begin_ns,
			  uint64_t duration_ns, bool is_outside)
{
	struct host_time *time = &of->host[key->kind];
	size_t i = find_row(&of->known_calls, key, sizeof(*key), of->n_calls);
	size_t interval = torsh_scope_at(&of->scope, begin_ns);
	bool is_whole = interval != STEP_NONE && interval < of->scope.n_whole;
	bool is_steady = is_whole && interval >= of->scope.first_steady;
	struct metrics_call *call;

	if (i == of->n_calls) {
		of->calls = torsh_array_reserve(of->calls, of->n_calls, &of->calls_room,
						sizeof(*of->calls));
		of->calls[of->n_calls++] = (struct metrics_call){
			.key = *key,
			.operator_name = torsh_timeline_label(of->process, key->operator_label)};
	}
	call = &of->calls[i];
#define ADD(to)                                         \
	(to)->n++;                                      \
	(to)->total_ns += duration_ns;                  \
	(to)->n_steady += is_steady;                    \
	(to)->steady_ns += is_steady ? duration_ns : 0; \
	(to)->n_outside += is_whole && is_outside;
	ADD(call)
	ADD(time)
#undef ADD
	if (duration_ns > call->longest_ns) {
		call->longest_ns = duration_ns;
		call->longest_at_ns = begin_ns;
	}
	torsh_busy_add(&time->busy, begin_ns, begin_ns + duration_ns);
}

static bool is_of_host(uint32_t kind)
{
	return kind == COPY_HTOD || kind == COPY_DTOH || kind == COPY_HTOA || kind == COPY_ATOH ||
	       kind == COPY_HTOH;
}

/* Returns what the host does while the device copies or fills. */
static enum host_kind kind_of_row(struct metrics_process *of, const struct event *event)
{
	const struct event_copy *copy = &event->copy;

	if (event->id == EVENT_MEMSET)
		return event->memset.is_async ? HOST_NONE : HOST_SYNCHRONOUS_MEMSET;
	if (event->id != EVENT_COPY)
		return HOST_NONE;
	/* A copy within a device need not wait, even if the call is synchronous by name. */
	if (!copy->is_async)
		return is_of_host(copy->kind) ? HOST_SYNCHRONOUS_COPY : HOST_NONE;
	of->n_unknown_memory += is_of_host(copy->kind) &&
				(copy->from == MEMORY_UNKNOWN || copy->to == MEMORY_UNKNOWN);
	return copy->from == MEMORY_PAGEABLE || copy->to == MEMORY_PAGEABLE ? HOST_PAGEABLE_COPY
									    : HOST_NONE;
}

/* Add the call that launched it; launches of graphs don't wait. */
static void add_call_of_row(struct metrics_process *of, const struct device_activity *activity,
			    const struct attribution *by)
{
	struct call_key key;
	enum host_kind kind =
		activity->record.graph ? HOST_NONE : kind_of_row(of, &activity->event);

	if (kind == HOST_NONE || !activity->has_launch || activity->index)
		return;
	memset(&key, 0, sizeof(key));
	key.kind = kind;
	key.api = activity->launch.api;
	key.operator_label = activity->launch.cause.operator_name;
	key.stack = by->stack;
	add_host_call(of, &key, activity->launch.begin_ns, activity->launch.duration_ns, true);
}

void torsh_metrics_row(struct metrics_process *of, struct metrics_device *device,
		       const struct device_activity *activity, const struct attribution *by)
{
	struct metrics_work *work = find_work(of, activity, by);

	work->n++;
	work->total_ns += activity->record.duration_ns;
	if (activity->record.duration_ns > work->longest_ns) {
		work->longest_ns = activity->record.duration_ns;
		work->longest_at_ns = activity->record.begin_ns;
	}
	device->work_ns += activity->record.duration_ns;
	device->unattributed_ns += work->is_attributed ? 0 : activity->record.duration_ns;
	device->communication_ns += is_communication(activity) ? activity->record.duration_ns : 0;
	if (activity->record.what == DEVICE_KERNEL && !activity->record.graph &&
	    activity->has_launch) {
		device->n_kernels++;
		device->n_short += activity->record.duration_ns < activity->launch.duration_ns;
	}
	if (is_communication(activity))
		torsh_metrics_collective(of, activity);
	add_call_of_row(of, activity, by);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static enum host_kind kind_of_call(const char *name)
{
#define HOST_CALL(KIND, text)                           \
	if (strncmp(name, text, sizeof(text) - 1) == 0) \
		return HOST_##KIND;
#include "tools/analysis/calls.def"
#undef HOST_CALL
	return HOST_NONE;
}

bool torsh_host_call_waits(const char *name)
{
	return kind_of_call(name) == HOST_WAIT;
}

static enum host_kind kind_of_label(struct metrics_process *of, uint32_t label)
{
	const char *name = torsh_timeline_label(of->process, label);

	if (!name)
		return HOST_NONE;
	if (!of->kind_of_label[label])
		of->kind_of_label[label] = kind_of_call(name) + 1;
	return of->kind_of_label[label] - 1;
}

void torsh_metrics_call(struct metrics_process *of, const struct timeline_event *event,
			const struct enclosing_spans *around)
{
	const struct event_device_call *says = &event->event.device_call;
	const struct span *span = around->in_operator ? around->in_operator : around->innermost;
	struct call_key key;

	memset(&key, 0, sizeof(key));
	key.kind = kind_of_label(of, says->api);
	if (key.kind == HOST_NONE || torsh_scope_at(&of->scope, says->begin) == STEP_NONE)
		return;
	key.api = says->api;
	key.operator_label = around->in_operator ? around->in_operator->name : 0;
	key.stack = event->stack;
	add_host_call(of, &key, says->begin, says->duration_ns,
		      !span || span->phase != PHASE_OPTIMIZER);
}

/* ---- operators ------------------------------------------------------------------------------- */

struct metrics_operator *torsh_metrics_operator(struct metrics_process *of, const char *name)
{
	size_t row = torsh_hash_map_put_text(&of->known_operators, name, of->n_operators)->value;

	if (row < of->n_operators)
		return &of->operators[row];
	of->operators = torsh_array_reserve(of->operators, of->n_operators, &of->operators_room,
					    sizeof(*of->operators));
	of->operators[of->n_operators].name = name;
	torsh_key_index_create(&of->operators[of->n_operators].shapes);
	return &of->operators[of->n_operators++];
}
