/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* See tools/analysis/observe.h. */
#include "tools/analysis/observe.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "tools/die.h"
#include "tools/profile/flops.h"

#define DEVICE_TYPE_CUDA 1u /* c10/core/DeviceType.h: the upper bits of a tensor's device */
#define OBSERVED_DEVICES_MAX 64u /* of a process; beyond are made up */

/* ---- rows by their keys ------------------------------------------------------------------------------------------ */

/* Leads to a row: the key is the first member, and compared byte by byte. */
struct known {
	size_t n_key, row;
	unsigned char key[]; /* zeros where the struct has holes */
};

static int compare_known(const void *a, const void *b)
{
	const struct known *x = a, *y = b;

	return memcmp(x->key, y->key, x->n_key);
}

/* The row of a key; n_rows: where it is the first, which is then so. */
static size_t find_row(void **tree, const void *key, size_t n_key, size_t n_rows)
{
	struct known *made = torsh_need(malloc(sizeof(*made) + n_key)), **found;

	*made = (struct known){.n_key = n_key, .row = n_rows};
	memcpy(made->key, key, n_key);
	found = torsh_need(tsearch(made, tree, compare_known));
	if (*found != made)
		free(made);
	return (*found)->row;
}

static struct observed_process *find_process(const struct observed *observed, const struct profile_process *process)
{
	for (size_t i = 0; i < observed->n; i++) {
		if (observed->processes[i].process == process)
			return &observed->processes[i];
	}
	return NULL;
}

/* ---- work of devices --------------------------------------------------------------------------------------------- */

static struct observed_device *find_device(struct observed_process *of, uint32_t number)
{
	for (size_t i = 0; i < of->n_devices; i++) {
		if (of->devices[i].number == number)
			return &of->devices[i];
	}
	if (of->n_devices == OBSERVED_DEVICES_MAX)
		return NULL;
	of->devices = torsh_need_room(of->devices, of->n_devices, &of->devices_room, sizeof(*of->devices));
	of->devices[of->n_devices].number = number;
	return &of->devices[of->n_devices++];
}

static void fill_work_key(struct work_key *key, const struct device_row *row, const struct attribution *by)
{
	const struct event_kernel *kernel = &row->event.kernel;

	memset(key, 0, sizeof(*key));
	key->what = row->span.what;
	key->device = row->span.device;
	key->site = by->site;
	key->stack = by->stack;
	if (row->event.id != EVENT_KERNEL)
		return;
	key->name = row->span.name;
	memcpy(key->grid, (uint32_t[]){kernel->grid_x, kernel->grid_y, kernel->grid_z}, sizeof(key->grid));
	memcpy(key->block, (uint32_t[]){kernel->block_x, kernel->block_y, kernel->block_z}, sizeof(key->block));
	key->registers = kernel->registers;
	key->static_bytes = kernel->static_shared_bytes;
	key->dynamic_bytes = kernel->dynamic_shared_bytes;
}

static struct observed_work *find_work(struct observed_process *of, const struct device_row *row,
				       const struct attribution *by)
{
	struct observed_work *work;
	struct work_key key;
	size_t i;

	fill_work_key(&key, row, by);
	i = find_row(&of->known_work, &key, sizeof(key), of->n_work);
	if (i < of->n_work)
		return &of->work[i];
	of->work = torsh_need_room(of->work, of->n_work, &of->work_room, sizeof(*of->work));
	work = &of->work[of->n_work++];
	*work = (struct observed_work){
		.key = key, .operator_name = by->operator_name, .is_attributed = !by->reason, .is_of_graph = row->span.graph};
	if (row->event.id == EVENT_KERNEL) {
		const char *name = torsh_timeline_label(of->process, row->span.name);

		work->kernel = row->event.kernel;
		work->family = name ? torsh_attribution_family(name) : NULL;
	}
	return work;
}

/* As HTA tells communication from computation. */
static bool is_communication(const struct device_row *row)
{
	const char *name = row->span.what == DEVICE_KERNEL ? torsh_timeline_label(row->process, row->span.name) : NULL;

	return name && strncmp(name, "nccl", 4) == 0;
}

static void add_stretch(struct observed_device *device, const struct device_row *row)
{
	const struct device_span *span = &row->span;

	if (!span->duration_ns)
		return;
	device->stretches = torsh_need_room(device->stretches, device->n_stretches, &device->stretches_room,
					    sizeof(*device->stretches));
	device->stretches[device->n_stretches++] = (struct device_stretch){
		.begin_ns = span->begin_ns,
		.end_ns = span->begin_ns + span->duration_ns,
		.asked_ns = torsh_device_row_asked_ns(row),
		.is_communication = is_communication(row),
	};
}

static void add_host_call(struct observed_process *of, const struct call_key *key, uint64_t begin_ns,
			  uint64_t duration_ns, bool is_outside)
{
	struct host_time *time = &of->host[key->kind];
	size_t i = find_row(&of->known_calls, key, sizeof(*key), of->n_calls);
	size_t span = torsh_scope_at(&of->scope, begin_ns);
	bool is_steady = span != STEP_NONE && span >= of->scope.first_steady;
	struct observed_call *call;

	if (i == of->n_calls) {
		of->calls = torsh_need_room(of->calls, of->n_calls, &of->calls_room, sizeof(*of->calls));
		of->calls[of->n_calls++] = (struct observed_call){
			.key = *key, .operator_name = torsh_timeline_label(of->process, key->operator_label)};
	}
	call = &of->calls[i];
#define ADD(to)                                             \
	(to)->n++;                                          \
	(to)->total_ns += duration_ns;                      \
	(to)->n_steady += is_steady;                        \
	(to)->steady_ns += is_steady ? duration_ns : 0;     \
	(to)->n_outside += is_outside;
	ADD(call)
	ADD(time)
#undef ADD
	torsh_busy_add(&time->busy, begin_ns, begin_ns + duration_ns);
}

static bool is_of_host(uint32_t kind)
{
	return kind == COPY_HTOD || kind == COPY_DTOH || kind == COPY_HTOA || kind == COPY_ATOH || kind == COPY_HTOH;
}

/* What the host does while the device copies or fills. */
static enum host_kind kind_of_row(struct observed_process *of, const struct event *event)
{
	const struct event_copy *copy = &event->copy;

	if (event->id == EVENT_MEMSET)
		return event->memset.is_async ? HOST_NONE : HOST_SYNCHRONOUS_MEMSET;
	if (event->id != EVENT_COPY)
		return HOST_NONE;
	/* Within a device a copy need not wait, whatever it is called. */
	if (!copy->is_async)
		return is_of_host(copy->kind) ? HOST_SYNCHRONOUS_COPY : HOST_NONE;
	of->n_unknown_memory += is_of_host(copy->kind) && (copy->from == MEMORY_UNKNOWN || copy->to == MEMORY_UNKNOWN);
	return copy->from == MEMORY_PAGEABLE || copy->to == MEMORY_PAGEABLE ? HOST_PAGEABLE_COPY : HOST_NONE;
}

/* The call that asked for it; those of graphs don't wait. */
static void add_call_of_row(struct observed_process *of, const struct device_row *row, const struct attribution *by)
{
	struct call_key key;
	enum host_kind kind = row->span.graph ? HOST_NONE : kind_of_row(of, &row->event);

	if (kind == HOST_NONE || !row->has_launch || row->index)
		return;
	memset(&key, 0, sizeof(key));
	key.kind = kind;
	key.api = row->launch.api;
	key.operator_label = row->launch.cause.operator_name;
	key.stack = by->stack;
	add_host_call(of, &key, row->launch.begin_ns, row->launch.duration_ns, true);
}

static void add_row(struct observed_process *of, struct observed_device *device, const struct device_row *row,
		    const struct attribution *by)
{
	struct observed_work *work = find_work(of, row, by);

	work->n++;
	work->total_ns += row->span.duration_ns;
	device->work_ns += row->span.duration_ns;
	device->unattributed_ns += work->is_attributed ? 0 : row->span.duration_ns;
	device->communication_ns += is_communication(row) ? row->span.duration_ns : 0;
	if (row->span.what == DEVICE_KERNEL && !row->span.graph && row->has_launch) {
		device->n_kernels++;
		device->n_short += row->span.duration_ns < row->launch.duration_ns;
	}
	add_call_of_row(of, row, by);
}

static void see_row(void *context, const struct device_row *row)
{
	struct observed *observed = context;
	struct observed_process *of = find_process(observed, row->process);
	struct observed_device *device = of ? find_device(of, row->span.device) : NULL;
	uint64_t asked_ns = torsh_device_row_asked_ns(row);
	struct attribution by;

	if (!device)
		return;
	torsh_attribute(observed->attributor, row, &by);
	/* What was asked for before the scope keeps the device busy in it, too. */
	add_stretch(device, row);
	if (torsh_scope_at(&of->scope, row->is_captured ? row->span.begin_ns : asked_ns) != STEP_NONE)
		add_row(of, device, row, &by);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static enum host_kind kind_of_call(const char *name)
{
#define HOST_CALL(KIND, text)                           \
	if (strncmp(name, text, sizeof(text) - 1) == 0) \
		return HOST_##KIND;
#include "tools/analysis/calls.def"
#undef HOST_CALL
	return HOST_NONE;
}

static enum host_kind kind_of_label(struct observed_process *of, uint32_t label)
{
	const char *name = torsh_timeline_label(of->process, label);

	if (!name)
		return HOST_NONE;
	if (!of->kind_of_label[label])
		of->kind_of_label[label] = kind_of_call(name) + 1;
	return of->kind_of_label[label] - 1;
}

static void see_call(struct observed_process *of, const struct timeline_event *event, const struct calls_around *around)
{
	const struct event_device_call *says = &event->event.device_call;
	const struct call *call = around->in_operator ? around->in_operator : around->innermost;
	struct call_key key;

	memset(&key, 0, sizeof(key));
	key.kind = kind_of_label(of, says->api);
	if (key.kind == HOST_NONE || torsh_scope_at(&of->scope, says->begin) == STEP_NONE)
		return;
	key.api = says->api;
	key.operator_label = around->in_operator ? around->in_operator->name : 0;
	key.stack = event->stack;
	add_host_call(of, &key, says->begin, says->duration_ns, !call || call->phase != PHASE_OPTIMIZER);
}

static uint64_t place_of(void *context, const struct profile_process *process, const struct timeline_event *event,
			 const struct calls_around *around)
{
	static char has_launched;
	const struct observed *observed = context;

	if (around->in_operator)
		around->in_operator->own = &has_launched;
	return torsh_attributor_place(observed->attributor, process, event, around->in_operator, 0);
}

static void see_launch(void *context, const struct profile_process *process, const struct timeline_event *event,
		       const struct calls_around *around)
{
	const struct observed *observed = context;
	struct observed_process *of = find_process(observed, process);

	if (of && event->event.id == EVENT_DEVICE_CALL)
		see_call(of, event, around);
	torsh_device_join_launch(observed->join, process, event, around);
}

/* ---- operators --------------------------------------------------------------------------------------------------- */

struct known_operator {
	const char *name; /* the process's or the attributor's */
	size_t row;
};

static int compare_operators(const void *a, const void *b)
{
	return strcmp(((const struct known_operator *)a)->name, ((const struct known_operator *)b)->name);
}

struct observed_operator *torsh_observed_operator(struct observed_process *of, const char *name)
{
	struct known_operator *made = torsh_need(malloc(sizeof(*made))), **found;

	*made = (struct known_operator){.name = name, .row = of->n_operators};
	found = torsh_need(tsearch(made, &of->known_operators, compare_operators));
	if (*found != made) {
		free(made);
		return &of->operators[(*found)->row];
	}
	of->operators = torsh_need_room(of->operators, of->n_operators, &of->operators_room, sizeof(*of->operators));
	of->operators[of->n_operators].name = name;
	return &of->operators[of->n_operators++];
}

static void see_begin(void *context, struct call *call)
{
	const struct observed *observed = context;
	struct observed_process *of = find_process(observed, call->process);

	torsh_attributor_begin(observed->attributor, call);
	torsh_phase_clock_begin(&of->clock, call);
}

static void add_operator(struct observed_process *of, const struct call *call, bool without_flops)
{
	struct observed_operator *op = torsh_observed_operator(of, torsh_call_name(call));
	const char *text = call->inputs ? torsh_timeline_label(call->process, call->inputs) : NULL;
	struct inputs *inputs = torsh_need(malloc(sizeof(*inputs)));
	struct flops flops;

	torsh_inputs_parse(inputs, text);
	flops = torsh_flops_of(op->name, inputs);
	free(inputs);
	op->n++;
	if (flops.status == FLOPS_COUNTED && !without_flops)
		op->flops += (double)flops.all;
	else
		op->n_unknown++;
}

static void see_end(void *context, struct call *call)
{
	const struct observed *observed = context;
	struct observed_process *of = find_process(observed, call->process);

	torsh_attributor_end(observed->attributor, call);
	torsh_phase_clock_end(&of->clock, call);
	if (call->kind == CALL_OPERATOR && call->own && torsh_scope_at(&of->scope, call->start_ns) != STEP_NONE)
		add_operator(of, call, observed->wish->profile->without_flops);
	call->own = NULL;
}

/* ---- everything else --------------------------------------------------------------------------------------------- */

static struct observed_memory *find_memory(struct observed_process *of, uint32_t device)
{
	for (size_t i = 0; i < of->n_memory; i++) {
		if (of->memory[i].device == device)
			return &of->memory[i];
	}
	if (of->n_memory == OBSERVED_DEVICES_MAX)
		return NULL;
	of->memory = torsh_need_room(of->memory, of->n_memory, &of->memory_room, sizeof(*of->memory));
	of->memory[of->n_memory].device = device;
	return &of->memory[of->n_memory++];
}

static void see_tensor(struct observed_process *of, const struct timeline_event *event, const struct call *innermost)
{
	const struct event_tensor *tensor = &event->event.tensor;
	const struct call *call = torsh_call_telling(innermost);
	struct observed_memory *memory;

	if (tensor->device >> 8 != DEVICE_TYPE_CUDA || torsh_scope_at(&of->scope, event->at_ns) == STEP_NONE)
		return;
	memory = find_memory(of, tensor->device & 0xff);
	if (!memory)
		return;
	if (tensor->reserved && (!memory->has_sums || tensor->allocated > memory->allocated)) {
		memory->has_sums = true;
		memory->allocated = tensor->allocated;
		memory->reserved = tensor->reserved;
	}
	if (tensor->is_free || tensor->bytes <= memory->largest_bytes)
		return;
	memory->largest_bytes = tensor->bytes;
	memory->largest_operator = call ? torsh_call_name(call) : NULL;
	memory->largest_stack = event->stack;
}

/* A CUpti_ActivityOverheadKind: flushes, instrumentation, resources, requests of buffers; not what the driver compiles or loads. */
static bool is_of_cupti(uint32_t kind)
{
	return kind == 1u << 16 || kind == 2u << 16 || kind == 3u << 16 || kind == 7u << 16 || kind == 8u << 16;
}

static void see_event(void *context, const struct profile_process *process, const struct timeline_event *event,
		      struct call *innermost)
{
	struct observed *observed = context;
	struct observed_process *of = find_process(observed, process);

	torsh_counters_see(&observed->counters, process, &event->event);
	switch (event->event.id) {
	case EVENT_TENSOR:
		see_tensor(of, event, innermost);
		return;
	case EVENT_DEVICE_MODE:
		of->mode = event->event.device_mode;
		of->has_mode = true;
		return;
	case EVENT_DEVICE_LOSS:
		of->losses = event->event.device_loss;
		of->has_losses = true;
		return;
	case EVENT_DEVICE_OVERHEAD:
		if (is_of_cupti(event->event.device_overhead.kind))
			of->overhead_ns += event->event.device_overhead.duration_ns;
		return;
	default:
		torsh_device_join_event(observed->join, process, &event->event);
	}
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static void start_process(struct observed_process *of, const struct profile_process *process,
			  const struct analysis_wish *wish)
{
	of->process = process;
	of->of = torsh_survey_of(wish->survey, process);
	torsh_scope_create(&of->scope, of->of, wish->from_ns, wish->to_ns);
	of->kind_of_label = torsh_need_items(NULL, 0, process->n_functions + 1, sizeof(*of->kind_of_label));
	of->spent = torsh_need_items(NULL, 0, of->of->steps.n + 1, sizeof(*of->spent));
	torsh_phase_clock_start(&of->clock, &of->of->steps, of->spent);
}

static void take_data(struct observed_process *of, const struct analysis_wish *wish)
{
	const struct steps *steps = &of->of->steps;

	torsh_phase_clock_stop(&of->clock);
	for (size_t i = 0; i < steps->n; i++) {
		if (steps->items[i].start_ns < wish->from_ns || steps->items[i].end_ns > wish->to_ns)
			continue;
		of->data_ns += of->spent[i].phase_ns[PHASE_DATA];
		of->data_scope_ns += steps->items[i].end_ns - steps->items[i].start_ns;
	}
}

/* What was needed for the walk only. */
static void end_process(struct observed_process *of)
{
	tdestroy(of->known_work, free);
	tdestroy(of->known_calls, free);
	of->known_work = of->known_calls = NULL;
	free(of->kind_of_label);
	free(of->spent);
	of->kind_of_label = NULL;
	of->spent = NULL;
}

struct observed *torsh_observe(const struct analysis_wish *wish)
{
	static const struct calls_visitor visitor = {
		.begin = see_begin, .end = see_end, .event = see_event, .launch = see_launch};
	static const struct device_visitor devices = {.own = place_of, .row = see_row};
	struct observed *observed = torsh_need(calloc(1, sizeof(*observed)));
	int rc;

	observed->wish = wish;
	observed->n = wish->n_processes;
	observed->processes = torsh_need_items(NULL, 0, observed->n, sizeof(*observed->processes));
	for (size_t i = 0; i < observed->n; i++)
		start_process(&observed->processes[i], wish->processes[i], wish);
	torsh_counters_create(&observed->counters);
	observed->attributor = torsh_attributor_create(wish->processes, wish->n_processes, wish->survey);
	observed->join = torsh_device_join_create(wish->survey, &devices, observed);
	rc = torsh_calls_walk(wish->profile, wish->processes, wish->n_processes, wish->survey->crossings, NULL, &visitor,
			      observed, NULL);
	if (rc < 0)
		torsh_die("can't read the timeline of %s: %s", wish->profile->path, strerror(-rc));
	torsh_device_join_destroy(observed->join);
	observed->join = NULL;
	for (size_t i = 0; i < observed->n; i++) {
		struct observed_process *of = &observed->processes[i];

		take_data(of, wish);
		end_process(of);
		for (size_t k = 0; k < of->n_devices; k++)
			torsh_observe_settle_device(&of->devices[k], &of->scope);
		for (int kind = 0; kind < N_HOST_KINDS; kind++)
			torsh_busy_settle(&of->host[kind].busy);
	}
	torsh_observe_counters(observed);
	return observed;
}

static void free_process(struct observed_process *of)
{
	for (size_t i = 0; i < of->n_devices; i++)
		free(of->devices[i].stretches);
	for (int kind = 0; kind < N_HOST_KINDS; kind++)
		torsh_busy_free(&of->host[kind].busy);
	tdestroy(of->known_operators, free);
	torsh_scope_destroy(&of->scope);
	free(of->work);
	free(of->calls);
	free(of->devices);
	free(of->memory);
	free(of->operators);
}

void torsh_observed_free(struct observed *observed)
{
	if (!observed)
		return;
	for (size_t i = 0; i < observed->n; i++)
		free_process(&observed->processes[i]);
	torsh_counters_destroy(&observed->counters);
	torsh_attributor_destroy(observed->attributor);
	free(observed->processes);
	free(observed);
}
