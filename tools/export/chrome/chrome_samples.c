/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Samples of the processor as the members stackFrames and samples, which follow the events. A
 * sample's weight is the processor time that it counts, in nanoseconds. The CPU that it ran on was
 * not recorded: samples are those of their thread.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/export/chrome/chrome.h"
#include "tools/export/sampled_stacks.h"
#include "tools/symbols/frame_text.h"

static const struct json_layout lines = JSON_LAYOUT("\n", ",\n", "\n", ":");

struct chrome_sample {
	uint64_t at_ns, weight_ns;
	uint32_t pid, tid, node;
};

struct chrome_samples {
	const struct trace *trace; /* of the latest one */
	struct sampled_stacks stacks;
	struct chrome_sample *items;
	size_t n, n_room;
};

static struct chrome_samples *samples_of(struct chrome *chrome)
{
	struct chrome_samples *samples = chrome->samples;

	if (!samples) {
		samples = chrome->samples = torsh_need(calloc(1, sizeof(*samples)));
		torsh_sampled_stacks_create(&samples->stacks, chrome->trace->symbols);
	} else if (samples->trace != chrome->trace) {
		torsh_sampled_stacks_restart(&samples->stacks, chrome->trace->symbols);
	}
	samples->trace = chrome->trace;
	return samples;
}

void torsh_chrome_keep_sample(struct chrome *chrome, const struct recorded_process *process,
			      const struct timeline_event *event)
{
	struct chrome_samples *samples = samples_of(chrome);

	samples->items = torsh_array_reserve(samples->items, samples->n, &samples->n_room,
					     sizeof(*samples->items));
	samples->items[samples->n++] = (struct chrome_sample){
		.at_ns = torsh_trace_time(chrome->trace, event->at_ns),
		.weight_ns = event->event.cpu_sample.cpu_ns,
		.pid = process->pid,
		.tid = torsh_trace_tid(process, event->thread),
		.node = torsh_sampled_stack(&samples->stacks, process, event->stack),
	};
}

/* "burn (/home/me/train.py:12)", "read": viewers show nothing but the name. */
static void put_frame_name(struct json_writer *json, const struct frame *frame)
{
	char name[256];

	if (frame->file && frame->line)
		torsh_json_put_format(json, "name", "%s (%s:%d)",
				      torsh_frame_name(frame, name, sizeof(name)), frame->file,
				      frame->line);
	else
		torsh_json_put_text(json, "name", torsh_frame_name(frame, name, sizeof(name)));
}

static void put_nodes(struct json_writer *json, const struct sampled_stacks *stacks)
{
	char number[16];

	torsh_json_begin_with(json, "stackFrames", true, &lines);
	for (uint32_t i = 1; i <= stacks->n_nodes; i++) {
		const struct sampled_node *node = torsh_sampled_node(stacks, i);
		const struct frame *frame = torsh_sampled_frame(stacks, node->frame);
		const char *module = frame->is_python ? "Python" : frame->module;

		snprintf(number, sizeof(number), "%" PRIu32, i);
		torsh_json_put_name(json, number);
		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "category", module ? module : "");
		put_frame_name(json, frame);
		if (node->parent)
			torsh_json_put_format(json, "parent", "%" PRIu32, node->parent);
		torsh_json_end_object(json);
	}
	torsh_json_end_object(json);
}

void torsh_chrome_put_samples(struct chrome *chrome)
{
	struct chrome_samples *samples = chrome->samples;
	struct json_writer *json = &chrome->json;

	if (!samples)
		return;
	put_nodes(json, &samples->stacks);
	torsh_json_begin_with(json, "samples", false, &lines);
	for (size_t i = 0; i < samples->n; i++) {
		const struct chrome_sample *sample = &samples->items[i];

		torsh_json_begin_object(json, NULL);
		torsh_json_put_u64(json, "pid", sample->pid);
		torsh_json_put_u64(json, "tid", sample->tid);
		torsh_json_put_us(json, "ts", sample->at_ns);
		torsh_json_put_escaped(json, "name", "cpu-clock");
		if (sample->node)
			torsh_json_put_format(json, "sf", "%" PRIu32, sample->node);
		torsh_json_put_u64(json, "weight", sample->weight_ns);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
	torsh_sampled_stacks_free(&samples->stacks);
	free(samples->items);
	free(samples);
}
