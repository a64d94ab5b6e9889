/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The parts of a trace in Chrome's JSON that are written once: its head, the names of processes
 * and threads, and steps.
 */
#include "tools/export/chrome/chrome.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/device/kernels/occupancy.h"

#define STEP_TID_BASE 0x40000000u /* thread id of the row of steps, above all threads */
/* duration of the extra step at the end, not 0: TensorBoard's plugin divides by it */
#define LAST_STEP_NS 1000

/* Begin a metadata event, up to its args. */
static void begin_metadata(struct json_writer *json, const char *what, uint32_t pid, uint64_t tid)
{
	torsh_json_begin_object(json, NULL);
	torsh_json_put_escaped(json, "ph", "M");
	torsh_json_put_escaped(json, "name", what);
	torsh_json_put_u64(json, "pid", pid);
	torsh_json_put_u64(json, "tid", tid);
	torsh_json_put_us(json, "ts", 0);
	torsh_json_begin_object(json, "args");
}

static void end_metadata(struct json_writer *json)
{
	torsh_json_end_object(json);
	torsh_json_end_object(json);
}

void torsh_chrome_put_text_of(struct json_writer *json, const char *what, uint32_t pid,
			      uint64_t tid, const char *argument, const char *text)
{
	begin_metadata(json, what, pid, tid);
	torsh_json_put_text(json, argument, text ? text : "");
	end_metadata(json);
}

void torsh_chrome_put_number_of(struct json_writer *json, const char *what, uint32_t pid,
				uint64_t tid, const char *argument, uint64_t number)
{
	begin_metadata(json, what, pid, tid);
	torsh_json_put_u64(json, argument, number);
	end_metadata(json);
}

static void put_thread(struct json_writer *json, const struct recorded_process *process, size_t row)
{
	uint32_t tid = torsh_trace_tid(process, (uint32_t)row);
	const char *name = process->threads[row].name;
	char *shown =
		torsh_need_text(name ? "thread %" PRIu32 " (%s)" : "thread %" PRIu32, tid, name);

	torsh_chrome_put_text_of(json, "thread_name", process->pid, tid, "name", shown);
	free(shown);
}

static void put_names(struct json_writer *json, const struct trace *trace,
		      const struct recorded_process *process)
{
	torsh_chrome_put_text_of(json, "process_name", process->pid, 0, "name",
				 torsh_recording_program_name(process));
	torsh_chrome_put_text_of(json, "process_labels", process->pid, 0, "labels",
				 trace->merge ? trace->merge->label : "CPU");
	torsh_chrome_put_number_of(json, "process_sort_index", process->pid, 0, "sort_index",
				   trace->merge ? trace->merge->n_parts : process->pid);
	for (size_t i = 0; i < process->n_threads; i++) {
		if (process->threads[i].is_known)
			put_thread(json, process, i);
	}
}

static void put_step(struct json_writer *json, const struct trace *trace, uint32_t pid,
		     const struct step *step, const char *rule)
{
	uint64_t begin_ns = torsh_trace_time(trace, step->start_ns),
		 end_ns = torsh_trace_time(trace, step->end_ns);

	torsh_json_begin_object(json, NULL);
	torsh_json_put_escaped(json, "ph", "X");
	torsh_json_put_escaped(json, "cat", "user_annotation");
	torsh_json_put_format(json, "name", "ProfilerStep#%" PRIu64, step->number);
	torsh_json_put_u64(json, "pid", pid);
	torsh_json_put_u64(json, "tid", STEP_TID_BASE + pid);
	torsh_json_put_us(json, "ts", begin_ns);
	torsh_json_put_us(json, "dur", end_ns - begin_ns);
	torsh_json_begin_object(json, "args");
	torsh_json_put_escaped(json, "Rule", rule);
	torsh_json_end_object(json);
	torsh_json_end_object(json);
}

/*
 * Put steps that torch.profiler's schedule did not mark, as it would have: on a separate row,
 * because they need not nest.
 */
static void put_steps(struct json_writer *json, const struct trace *trace,
		      const struct recorded_process *process)
{
	const struct prepass_process *of = torsh_prepass_of(trace->prepass, process);
	const struct steps *steps = &of->steps;
	uint32_t pid = process->pid;
	struct step last;
	char *name;

	/* The program's own ranges are shown where they are: they may overlap. */
	if (!steps->n || steps->rule == STEPS_BY_PROFILER || steps->slices)
		return;
	name = torsh_need_text("steps (%s)", torsh_step_rule_texts[steps->rule]);
	torsh_chrome_put_text_of(json, "thread_name", pid, (uint64_t)STEP_TID_BASE + pid, "name",
				 name);
	free(name);
	for (size_t i = 0; i < steps->n; i++) {
		struct step step = steps->items[i];

		/*
		 * Readers add floating-point numbers: a step that ends where the next one begins
		 * would overlap it.
		 */
		step.end_ns -= i + 1 < steps->n && step.end_ns == steps->items[i + 1].start_ns &&
			       step.end_ns > step.start_ns;
		if (torsh_trace_has(trace, step.start_ns))
			put_step(json, trace, pid, &step, torsh_step_rule_names[steps->rule]);
	}
	/*
	 * HTA ignores the last step and all after it, because torch.profiler leaves it unfinished:
	 * an extra one is added.
	 */
	if (trace->merge)
		return;
	last.number = steps->items[steps->n - 1].number + 1;
	last.start_ns = of->last_ns + 1;
	if (last.start_ns > trace->to_ns)
		last.start_ns = trace->to_ns;
	last.end_ns = last.start_ns + LAST_STEP_NS;
	put_step(json, trace, pid, &last, "end of the recording");
}

void torsh_chrome_put_process(struct json_writer *json, const struct trace *trace,
			      const struct recorded_process *process)
{
	put_names(json, trace, process);
	put_steps(json, trace, process);
}

/* ---- layouts --------------------------------------------------------------------------------- */

/* As Kineto's: blanks in the head, which HTA looks for; none in events. */
static const struct json_layout head = JSON_LAYOUT("\n", ",\n", "\n", ": ");
static const struct json_layout lines = JSON_LAYOUT("\n", ",\n", "\n", ":");
static const struct json_layout devices = JSON_LAYOUT("", ",\n", "", ":");
static const struct json_layout unknown_devices = JSON_LAYOUT("", ", ", "", ":");
static const struct json_layout device_members = JSON_LAYOUT("", ", ", "", ": ");
static const struct json_layout rank_member = JSON_LAYOUT("", ",", "", ": ");

/* ---- devices --------------------------------------------------------------------------------- */

/* Put a property unless it is 0, which means unreported. */
static void put_property(struct json_writer *json, const char *name, uint64_t value)
{
	if (value)
		torsh_json_put_u64(json, name, value);
}

static void put_device(struct json_writer *json, const struct recorded_process *process,
		       const struct event_device *device)
{
	const char *name = torsh_timeline_label(process, device->name);
	uint64_t warp = device->warp_threads;

	torsh_json_begin_with(json, NULL, true, &device_members);
	torsh_json_put_u64(json, "id", device->device);
	if (name)
		torsh_json_put_text(json, "name", name);
	put_property(json, "totalGlobalMem", device->memory_bytes);
	put_property(json, "computeMajor", device->capability_major);
	if (device->capability_major)
		torsh_json_put_u64(json, "computeMinor", device->capability_minor);
	put_property(json, "maxThreadsPerBlock", device->block_threads);
	put_property(json, "maxThreadsPerMultiprocessor", warp * device->multiprocessor_warps);
	put_property(json, "regsPerBlock", device->block_registers);
	put_property(json, "warpSize", warp);
	put_property(json, "sharedMemPerBlock", device->block_shared_bytes);
	put_property(json, "numSms", device->multiprocessors);
	put_property(json, "regsPerMultiprocessor", device->multiprocessor_registers);
	put_property(json, "sharedMemPerBlockOptin", torsh_occupancy_shared_max(device));
	put_property(json, "sharedMemPerMultiprocessor", device->multiprocessor_shared_bytes);
	torsh_json_end_object(json);
}

/*
 * Returns the process that reported most about the devices: processes of one run see the same
 * ones, but not all of them query.
 */
static const struct prepass_process *find_owner(const struct trace *trace)
{
	const struct prepass_process *owner = NULL;

	for (size_t i = 0; i < trace->n_processes; i++) {
		const struct prepass_process *of =
			torsh_prepass_of(trace->prepass, trace->processes[i]);

		if (of->devices.n && (!owner || of->devices.n > owner->devices.n))
			owner = of;
	}
	return owner;
}

/* Put a placeholder for an unreported device. */
static void put_unknown(struct json_writer *json, uint32_t number)
{
	if (number)
		torsh_json_set_layout(json, &unknown_devices);
	torsh_json_begin_with(json, NULL, true, &device_members);
	torsh_json_put_u64(json, "id", number);
	torsh_json_end_object(json);
}

/* Readers use a device's number as an index: unreported devices get a placeholder. */
static void put_devices(struct json_writer *json, const struct trace *trace)
{
	const struct prepass_process *owner = find_owner(trace);
	uint32_t number = 0;

	torsh_json_begin_with(json, "deviceProperties", false, &devices);
	for (size_t i = 0; owner && i < owner->devices.n; i++) {
		const struct event_device *device = &owner->devices.items[i];

		for (; number < device->device; number++)
			put_unknown(json, number);
		if (number++)
			torsh_json_set_layout(json, &devices);
		put_device(json, owner->process, device);
	}
	torsh_json_end_array(json);
}

/* ---- the head -------------------------------------------------------------------------------- */

/* A process without a launcher's rank is the only one of its run. */
static void put_distributed(struct json_writer *json, const struct trace *trace)
{
	const struct recorded_identity *identity = NULL;
	uint32_t rank = 0;
	bool has_rank = false;

	for (size_t i = 0; i < trace->n_processes && !has_rank; i++) {
		has_rank = torsh_recording_rank(trace->processes[i]->rank, &rank);
		identity = &trace->processes[i]->identity;
	}
	/* HTA finds the rank by this text, with its blank, in the first bytes of the file. */
	torsh_json_begin_with(json, "distributedInfo", true, &rank_member);
	torsh_json_put_u64(json, "rank", rank);
	torsh_json_set_layout(json, &torsh_json_compact);
	if (!has_rank)
		torsh_json_put_u64(json, "world_size", 1);
	else if (identity->has_world_size)
		torsh_json_put_u64(json, "world_size", identity->world_size);
	torsh_json_end_object(json);
}

void torsh_chrome_put_header(struct json_writer *json, const struct trace *trace)
{
	const struct recording *recording = trace->recording;
	bool has_tensors = false;

	for (size_t i = 0; i < trace->n_processes; i++)
		has_tensors = has_tensors ||
			      torsh_prepass_of(trace->prepass, trace->processes[i])->n_tensors;
	torsh_json_begin_with(json, NULL, true, &head);
	torsh_json_put_u64(json, "schemaVersion", 1);
	/* Readers take these for one rank's. */
	if (!trace->merge) {
		put_devices(json, trace);
		put_distributed(json, trace);
	}
	torsh_json_put_u64(json, "record_shapes", trace->prepass->has_inputs);
	torsh_json_put_u64(json, "profile_memory", has_tensors);
	torsh_json_put_u64(json, "with_stack", trace->prepass->has_stacks);
	torsh_json_put_text(json, "host_name", recording->host ? recording->host : "");
	torsh_json_put_escaped(json, "displayTimeUnit", "ms");
	torsh_json_put_u64(json, "baseTimeNanoseconds",
			   trace->merge ? trace->merge->origin_realtime_ns
					: recording->start_realtime_ns);
	torsh_json_set_layout(json, &lines);
	torsh_json_begin_with(json, "traceEvents", false, &lines);
	begin_metadata(json, "torsh", 0, 0);
	end_metadata(json);
}
