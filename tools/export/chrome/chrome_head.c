/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The parts of a trace in Chrome's JSON that are written once: its head, the names of processes and
 * threads, steps.
 */
#include "tools/export/chrome/chrome.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/device/kernels/occupancy.h"

#define STEP_TID_BASE 0x40000000u /* beyond any thread's: the row of the steps */
/* of the step that stands for the end: TensorBoard's plugin divides by it */
#define LAST_STEP_NS 1000

void torsh_chrome_put_metadata(struct output_stream *output, const char *name, uint32_t pid,
			       uint64_t tid, const char *argument)
{
	torsh_stream_print(output,
			   ",\n{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu64
			   ",\"ts\":0.000,\"args\":{%s}}",
			   name, pid, tid, argument);
}

void torsh_chrome_put_named(struct output_stream *output, const char *what, uint32_t pid,
			    uint64_t tid, const char *name)
{
	char *escaped = torsh_trace_escape(name),
	     *argument = torsh_need_text("\"name\":\"%s\"", escaped);

	torsh_chrome_put_metadata(output, what, pid, tid, argument);
	free(argument);
	free(escaped);
}

static void put_thread(struct output_stream *output, const struct recorded_process *process,
		       size_t row)
{
	uint32_t tid = torsh_trace_tid(process, (uint32_t)row);
	const char *name = process->threads[row].name;
	char *shown =
		torsh_need_text(name ? "thread %" PRIu32 " (%s)" : "thread %" PRIu32, tid, name);

	torsh_chrome_put_named(output, "thread_name", process->pid, tid, shown);
	free(shown);
}

static void put_names(struct output_stream *output, const struct recorded_process *process)
{
	char order[48];

	torsh_chrome_put_named(output, "process_name", process->pid, 0,
			       torsh_recording_program_name(process));
	torsh_chrome_put_metadata(output, "process_labels", process->pid, 0, "\"labels\":\"CPU\"");
	snprintf(order, sizeof(order), "\"sort_index\":%" PRIu32, process->pid);
	torsh_chrome_put_metadata(output, "process_sort_index", process->pid, 0, order);
	for (size_t i = 0; i < process->n_threads; i++) {
		if (process->threads[i].is_known)
			put_thread(output, process, i);
	}
}

static void put_step(const struct trace *trace, uint32_t pid, const struct step *step,
		     const char *rule)
{
	char start[32], duration[32];

	*torsh_digits_us(start, step->start_ns) = '\0';
	*torsh_digits_us(duration, step->end_ns - step->start_ns) = '\0';
	torsh_stream_print(
		trace->output,
		",\n{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#%" PRIu64
		"\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
		",\"ts\":%s,\"dur\":%s,\"args\":{\"Rule\":\"%s\"}}",
		step->number, pid, STEP_TID_BASE + pid, start, duration, rule);
}

/*
 * Steps as torch.profiler's schedule would mark them, where it didn't: on a row of their own, as
 * they need not nest.
 */
static void put_steps(const struct trace *trace, const struct recorded_process *process)
{
	const struct prepass_process *of = torsh_prepass_of(trace->prepass, process);
	const struct steps *steps = &of->steps;
	uint32_t pid = process->pid;
	struct step last;
	char *name;

	if (!steps->n || steps->rule == STEPS_BY_PROFILER)
		return;
	name = torsh_need_text("steps (%s)", torsh_step_rule_texts[steps->rule]);
	torsh_chrome_put_named(trace->output, "thread_name", pid, (uint64_t)STEP_TID_BASE + pid,
			       name);
	free(name);
	for (size_t i = 0; i < steps->n; i++) {
		struct step step = steps->items[i];

		/*
		 * Readers add in floating point: what ends where the next begins would overlap it.
		 */
		step.end_ns -= i + 1 < steps->n && step.end_ns == steps->items[i + 1].start_ns &&
			       step.end_ns > step.start_ns;
		if (torsh_trace_has(trace, step.start_ns))
			put_step(trace, pid, &step, torsh_step_rule_names[steps->rule]);
	}
	/*
	 * HTA leaves out what began with the last step or after it, which torch.profiler leaves
	 * unfinished.
	 */
	last.number = steps->items[steps->n - 1].number + 1;
	last.start_ns = of->last_ns + 1;
	if (last.start_ns > trace->to_ns)
		last.start_ns = trace->to_ns;
	last.end_ns = last.start_ns + LAST_STEP_NS;
	put_step(trace, pid, &last, "end of the recording");
}

void torsh_chrome_put_process(struct trace *trace, const struct recorded_process *process)
{
	put_names(trace->output, process);
	put_steps(trace, process);
}

/* ---- devices --------------------------------------------------------------------------------- */

/* 0 was not reported. */
static void put_property(struct output_stream *output, const char *name, uint64_t value)
{
	if (value)
		torsh_stream_print(output, ", \"%s\": %" PRIu64, name, value);
}

static void put_device(struct output_stream *output, const struct recorded_process *process,
		       const struct event_device *device)
{
	const char *name = torsh_timeline_label(process, device->name);
	uint64_t warp = device->warp_threads;

	torsh_stream_print(output, "{\"id\": %" PRIu32, device->device);
	if (name) {
		char *escaped = torsh_trace_escape(name);

		torsh_stream_print(output, ", \"name\": \"%s\"", escaped);
		free(escaped);
	}
	put_property(output, "totalGlobalMem", device->memory_bytes);
	put_property(output, "computeMajor", device->capability_major);
	if (device->capability_major)
		torsh_stream_print(output, ", \"computeMinor\": %" PRIu32,
				   device->capability_minor);
	put_property(output, "maxThreadsPerBlock", device->block_threads);
	put_property(output, "maxThreadsPerMultiprocessor", warp * device->multiprocessor_warps);
	put_property(output, "regsPerBlock", device->block_registers);
	put_property(output, "warpSize", warp);
	put_property(output, "sharedMemPerBlock", device->block_shared_bytes);
	put_property(output, "numSms", device->multiprocessors);
	put_property(output, "regsPerMultiprocessor", device->multiprocessor_registers);
	put_property(output, "sharedMemPerBlockOptin", torsh_occupancy_shared_max(device));
	put_property(output, "sharedMemPerMultiprocessor", device->multiprocessor_shared_bytes);
	torsh_stream_text(output, "}");
}

/*
 * Returns the process that reported most about the devices: processes of one run see the same ones,
 * but not all of them look.
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

/* Readers find a device at the index of its number: unreported devices keep their place. */
static void put_devices(const struct trace *trace)
{
	const struct prepass_process *owner = find_owner(trace);
	uint32_t number = 0;

	for (size_t i = 0; owner && i < owner->devices.n; i++) {
		const struct event_device *device = &owner->devices.items[i];

		for (; number < device->device; number++)
			torsh_stream_print(trace->output, "%s{\"id\": %" PRIu32 "}",
					   number ? ", " : "", number);
		torsh_stream_text(trace->output, number++ ? ",\n" : "");
		put_device(trace->output, owner->process, device);
	}
}

/* ---- the head -------------------------------------------------------------------------------- */

/* A process that no launcher gave a rank is the only one of its run. */
static void put_distributed(const struct trace *trace, struct output_stream *output)
{
	uint32_t rank = 0;
	bool has_rank = false;

	for (size_t i = 0; i < trace->n_processes && !has_rank; i++)
		has_rank = torsh_recording_rank(trace->processes[i]->rank, &rank);
	/* HTA finds the rank by this text, with its blank, in the first bytes of the file. */
	torsh_stream_print(output, "\"distributedInfo\": {\"rank\": %" PRIu32 "%s},\n", rank,
			   has_rank ? "" : ",\"world_size\":1");
}

void torsh_chrome_put_header(struct trace *trace)
{
	bool has_tensors = false;
	char *host = torsh_trace_escape(trace->recording->host);

	for (size_t i = 0; i < trace->n_processes; i++)
		has_tensors = has_tensors ||
			      torsh_prepass_of(trace->prepass, trace->processes[i])->n_tensors;
	torsh_stream_text(trace->output, "{\n\"schemaVersion\": 1,\n\"deviceProperties\": [");
	put_devices(trace);
	torsh_stream_text(trace->output, "],\n");
	put_distributed(trace, trace->output);
	torsh_stream_print(
		trace->output,
		"\"record_shapes\": %d,\n\"profile_memory\": %d,\n\"with_stack\": %d,\n\"host_name\": \"%s\",\n"
		"\"displayTimeUnit\": \"ms\",\n\"baseTimeNanoseconds\": %" PRIu64
		",\n\"traceEvents\":[\n"
		"{\"ph\":\"M\",\"name\":\"torsh\",\"pid\":0,\"tid\":0,\"ts\":0.000,\"args\":{}}",
		trace->prepass->has_inputs, has_tensors, trace->prepass->has_stacks, host,
		trace->recording->start_realtime_ns);
	free(host);
}
