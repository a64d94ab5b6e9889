/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Capture of streams. */
#include "test/simcuda/engine/capture.h"

#include <stdlib.h>
#include <string.h>

#include "test/simcuda/engine/call.h"
#include "test/simcuda/engine/lock.h"
#include "test/simcuda/engine/result.h"

static struct sim_capture *captures;
static uint64_t last_id;
static _Thread_local enum sim_capture_mode thread_mode;

static void unref(struct sim_capture *capture)
{
	if (--capture->n_refs == 0)
		free(capture);
}

void sim_capture_leave(struct sim_capture_end *end)
{
	if (end->capture)
		unref(end->capture);
	free(end->after);
	*end = (struct sim_capture_end){0};
}

static bool has(const struct sim_capture_end *end, const struct sim_graph_node *node)
{
	for (size_t i = 0; i < end->n_after; i++)
		if (end->after[i] == node)
			return true;
	return false;
}

static void add_after(struct sim_capture_end *end, struct sim_graph_node *const *after, size_t n)
{
	end->after = realloc(end->after, (end->n_after + n + 1) * sizeof(*end->after));
	for (size_t i = 0; i < n; i++)
		if (!has(end, after[i]))
			end->after[end->n_after++] = after[i];
}

static void join(struct sim_capture_end *end, struct sim_capture *capture)
{
	capture->n_refs++;
	end->capture = capture;
}

void sim_capture_set_after(struct sim_stream *stream, struct sim_graph_node *const *after, size_t n,
			   bool keeps_others)
{
	if (!keeps_others)
		stream->end.n_after = 0;
	add_after(&stream->end, after, n);
}

enum sim_capture_mode sim_capture_exchange_mode(enum sim_capture_mode mode)
{
	enum sim_capture_mode before = thread_mode;

	thread_mode = mode;
	return before;
}

int sim_capture_begin(struct sim_stream *stream, enum sim_capture_mode mode,
		      struct sim_graph *graph, struct sim_graph_node *const *after, size_t n_after)
{
	struct sim_capture *capture;

	if (stream == stream->context->legacy)
		return SIM_CAPTURE_UNSUPPORTED;
	if (stream->end.capture)
		return SIM_INVALID_VALUE;
	if (!graph)
		graph = sim_graph_create();
	sim_lock();
	capture = calloc(1, sizeof(*capture));
	*capture = (struct sim_capture){
		.id = ++last_id,
		.mode = mode,
		.thread = sim_thread_id(),
		.graph = graph,
		.origin = stream,
		.next = captures,
	};
	captures = capture;
	join(&stream->end, capture);
	add_after(&stream->end, after, n_after);
	sim_unlock();
	return SIM_SUCCESS;
}

/* Whether work was left in streams that were never joined with the origin again. */
static bool is_unjoined(const struct sim_capture *capture)
{
	for (size_t i = 0; i < capture->graph->n_nodes; i++) {
		const struct sim_graph_node *node = capture->graph->nodes[i];

		if (!sim_graph_has_dependents(node) && !has(&capture->origin->end, node))
			return true;
	}
	return false;
}

static void end_all_streams(struct sim_capture *capture)
{
	struct sim_capture **link = &captures;
	struct sim_stream *stream = capture->origin->context->streams;

	while (*link && *link != capture)
		link = &(*link)->next;
	if (*link)
		*link = capture->next;
	capture->is_over = true;
	capture->n_refs++;
	for (; stream; stream = stream->next)
		if (stream->end.capture == capture)
			sim_capture_leave(&stream->end);
	unref(capture);
}

int sim_capture_end(struct sim_stream *stream, struct sim_graph **graph)
{
	struct sim_capture *capture;
	int result = SIM_SUCCESS;

	*graph = NULL;
	sim_lock();
	capture = stream->end.capture;
	if (!capture || capture->origin != stream)
		result = capture ? SIM_CAPTURE_UNMATCHED : SIM_INVALID_VALUE;
	else if (capture->mode != SIM_CAPTURE_RELAXED && capture->thread != sim_thread_id())
		result = SIM_CAPTURE_WRONG_THREAD;
	if (result) {
		sim_unlock();
		return result;
	}
	if (capture->is_broken)
		result = SIM_CAPTURE_INVALIDATED;
	else if (is_unjoined(capture))
		result = SIM_CAPTURE_UNJOINED;
	else
		*graph = capture->graph;
	end_all_streams(capture);
	sim_unlock();
	return result;
}

int sim_capture_check_call(void)
{
	int result = SIM_SUCCESS;

	if (thread_mode == SIM_CAPTURE_RELAXED || !captures)
		return SIM_SUCCESS;
	sim_lock();
	for (struct sim_capture *capture = captures; capture; capture = capture->next) {
		bool is_own =
			capture->thread == sim_thread_id() && capture->mode != SIM_CAPTURE_RELAXED;
		bool is_global =
			capture->mode == SIM_CAPTURE_GLOBAL && thread_mode == SIM_CAPTURE_GLOBAL;

		if (is_own || is_global) {
			capture->is_broken = true;
			result = SIM_CAPTURE_UNSUPPORTED;
		}
	}
	sim_unlock();
	return result;
}

static bool is_going_on(const struct sim_capture_end *end)
{
	return end->capture && !end->capture->is_over;
}

bool sim_capture_takes(const struct sim_stream *stream, const struct sim_work *work)
{
	return stream->end.capture || (work->kind == SIM_WAIT && is_going_on(&work->event->end));
}

/* The stream waits for an event: it takes part in the event's capture from here on. */
static int wait_in_capture(struct sim_stream *stream, const struct sim_event *event)
{
	if (!is_going_on(&event->end)) {
		stream->end.capture->is_broken = true;
		return SIM_CAPTURE_ISOLATION;
	}
	if (stream->end.capture && stream->end.capture != event->end.capture)
		return SIM_CAPTURE_MERGE;
	if (!stream->end.capture)
		join(&stream->end, event->end.capture);
	add_after(&stream->end, event->end.after, event->end.n_after);
	return SIM_SUCCESS;
}

static void record_in_capture(struct sim_event *event, const struct sim_stream *stream)
{
	struct sim_capture *capture = stream->end.capture;

	capture->n_refs++;
	sim_capture_leave(&event->end);
	event->end.capture = capture;
	add_after(&event->end, stream->end.after, stream->end.n_after);
}

static void add_node(struct sim_stream *stream, const struct sim_work *work)
{
	const struct sim_tracer *tracer = sim_tracer();
	struct sim_graph *graph = stream->end.capture->graph;
	struct sim_graph_node *node =
		sim_graph_add(graph, work, stream->end.after, stream->end.n_after);

	sim_capture_set_after(stream, &node, 1, false);
	if (!tracer || !tracer->resource)
		return;
	sim_unlock();
	tracer->resource(&(struct sim_resource_event){.what = SIM_NODE_CREATED,
						      .context = stream->context,
						      .stream = stream,
						      .graph = graph,
						      .node = node});
	sim_lock();
}

int sim_capture_add(struct sim_stream *stream, const struct sim_work *work)
{
	struct sim_capture *capture = stream->end.capture;

	if (capture && capture->is_broken)
		return SIM_CAPTURE_INVALIDATED;
	if (work->kind == SIM_WAIT)
		return wait_in_capture(stream, work->event);
	if (work->kind == SIM_RECORD) {
		record_in_capture(work->event, stream);
		return SIM_SUCCESS;
	}
	if (work->kind == SIM_COPY && !work->copy.is_async) {
		capture->is_broken = true;
		return SIM_CAPTURE_UNSUPPORTED;
	}
	struct sim_work kept = *work;
	if (kept.kind == SIM_COPY) {
		/* A node reads its source each time that it is launched. */
		free(kept.copy.staged);
		kept.copy.staged = NULL;
	}
	add_node(stream, &kept);
	return SIM_SUCCESS;
}

int sim_capture_forbids(struct sim_stream *stream)
{
	if (!is_going_on(&stream->end))
		return SIM_SUCCESS;
	stream->end.capture->is_broken = true;
	return SIM_CAPTURE_UNSUPPORTED;
}

void sim_capture_abandon(struct sim_stream *stream)
{
	if (!stream->end.capture)
		return;
	stream->end.capture->is_broken = true;
	sim_capture_leave(&stream->end);
}
