/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The work of devices in the graph: launched by a thread, in the order of its stream. */
#include "tools/analysis/critical/build.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

#define LOOKED_BACK_MAX 256u /* pieces that other threads launched during a wait */

static int compare_pieces(const void *a, const void *b)
{
	const struct device_piece *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	if (x->context != y->context)
		return x->context < y->context ? -1 : 1;
	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

static bool is_of_stream(const struct stream *stream, const struct device_piece *piece)
{
	return stream->pieces->device == piece->device &&
	       stream->pieces->context == piece->context && stream->pieces->stream == piece->stream;
}

static int compare_waits(const void *a, const void *b)
{
	const struct stream_wait *x = a, *y = b;

	return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

/* What a launch took at least until its work began. */
static uint32_t least_launch(const struct collected *collected)
{
	uint64_t least_ns = UINT32_MAX;

	for (size_t i = 0; i < collected->n_pieces; i++) {
		const struct device_piece *piece = &collected->pieces[i];
		uint64_t ns = piece->begin_ns > piece->launched_ns
				      ? piece->begin_ns - piece->launched_ns
				      : 0;

		if (piece->has_launch && ns < least_ns)
			least_ns = ns;
	}
	return least_ns < UINT32_MAX ? (uint32_t)least_ns : 0;
}

static void add_piece(struct built *built, struct stream *stream, const struct device_piece *piece,
		      uint32_t lane)
{
	enum critical_kind kind = piece->what == DEVICE_KERNEL || piece->what == DEVICE_GRAPH
					  ? CRITICAL_KERNELS
					  : CRITICAL_COPIES;
	const char *name = piece->name ? piece->name : torsh_device_what_names[piece->what];
	uint32_t what = torsh_built_what(built, kind, name, lane);
	uint32_t node = torsh_graph_add(&built->graph, piece->begin_ns, piece->end_ns, what);

	if (stream->n++)
		torsh_graph_need(&built->graph, node, node - 1, EDGE_STREAM, 0);
	if (piece->has_launch)
		torsh_graph_need(&built->graph, node,
				 torsh_built_node(built, piece->thread, piece->launched_ns),
				 EDGE_LAUNCH, built->launch_ns);
}

static void add_streams(struct built *built, const struct collected *collected)
{
	for (size_t i = 0; i < collected->n_pieces; i++) {
		const struct device_piece *piece = &collected->pieces[i];
		struct stream *last =
			built->n_streams ? &built->streams[built->n_streams - 1] : NULL;

		if (!last || !is_of_stream(last, piece)) {
			built->streams =
				torsh_array_reserve(built->streams, built->n_streams,
						    &built->streams_room, sizeof(*built->streams));
			last = &built->streams[built->n_streams++];
			*last = (struct stream){.pieces = piece,
						.first_node = (uint32_t)built->graph.n};
		}
		add_piece(built, last, piece, (uint32_t)(built->lanes->n + built->n_streams - 1));
	}
}

/* ---- waits ----------------------------------------------------------------------------------- */

/*
 * Returns the stream's last piece that was launched before launched_ns and had ended at end_ns, or
 * its number of pieces.
 */
static size_t find_piece(const struct stream *stream, uint64_t launched_ns, uint64_t end_ns)
{
	size_t low = 0, high = stream->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (stream->pieces[middle].begin_ns < end_ns)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t n = 0; low && n < LOOKED_BACK_MAX; n++) {
		const struct device_piece *piece = &stream->pieces[--low];

		if (piece->end_ns <= end_ns && piece->launched_ns < launched_ns)
			return low;
	}
	return stream->n;
}

/* Of the streams of a context, except one, what ended last. */
static uint32_t find_latest(const struct built *built, const struct stream *except,
			    uint32_t context, uint64_t launched_ns, uint64_t end_ns)
{
	uint32_t node = GRAPH_NONE;
	uint64_t latest_ns = 0;

	for (size_t i = 0; i < built->n_streams; i++) {
		const struct stream *stream = &built->streams[i];
		size_t k = find_piece(stream, launched_ns, end_ns);

		if (stream == except || stream->pieces->context != context || k == stream->n ||
		    stream->pieces[k].end_ns <= latest_ns)
			continue;
		latest_ns = stream->pieces[k].end_ns;
		node = stream->first_node + (uint32_t)k;
	}
	return node;
}

/* Returns how many waits of streams were called until then. */
static size_t waits_until(const struct collected *collected, uint64_t at_ns)
{
	size_t low = 0, high = collected->n_stream_waits;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (collected->stream_waits[middle].at_ns <= at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* A wait for another stream was queued between the launches of two pieces of the stream. */
static bool has_queued_wait(const struct collected *collected, const struct stream *stream,
			    size_t k, uint64_t *at_ns)
{
	uint64_t from_ns = k ? stream->pieces[k - 1].launched_ns : 0;

	for (size_t i = waits_until(collected, stream->pieces[k].launched_ns); i--;) {
		const struct stream_wait *wait = &collected->stream_waits[i];

		if (wait->at_ns <= from_ns)
			return false;
		if (wait->stream != stream->pieces->stream ||
		    wait->context != stream->pieces->context)
			continue;
		*at_ns = wait->at_ns;
		return true;
	}
	return false;
}

static void add_stream_waits(struct built *built, const struct collected *collected,
			     const struct stream *stream)
{
	for (size_t k = 0; k < stream->n; k++) {
		const struct device_piece *piece = &stream->pieces[k];
		uint64_t at_ns;

		if (!piece->has_launch || !has_queued_wait(collected, stream, k, &at_ns))
			continue;
		built->n_guessed++;
		torsh_graph_need(&built->graph, stream->first_node + (uint32_t)k,
				 find_latest(built, stream, piece->context, at_ns,
					     piece->begin_ns + GRAPH_TOLERANCE_NS),
				 EDGE_STREAMS, 0);
	}
}

void torsh_built_add_devices(struct built *built, struct collected *collected)
{
	if (!collected->n_pieces)
		return;
	qsort(collected->pieces, collected->n_pieces, sizeof(*collected->pieces), compare_pieces);
	built->launch_ns = least_launch(collected);
	add_streams(built, collected);
	if (!collected->n_stream_waits)
		return;
	qsort(collected->stream_waits, collected->n_stream_waits, sizeof(*collected->stream_waits),
	      compare_waits);
	for (size_t i = 0; i < built->n_streams; i++)
		add_stream_waits(built, collected, &built->streams[i]);
}

/* A call for all streams, by what CUPTI reported of it or by its name. */
static bool is_for_all(const struct device_sync *sync)
{
	return sync->kind == WAIT_FOR_CONTEXT ||
	       (sync->kind == WAIT_UNKNOWN && sync->call.name &&
		(strstr(sync->call.name, "Device") || strstr(sync->call.name, "Ctx") ||
		 strstr(sync->call.name, "Thread")));
}

size_t torsh_built_awaited(struct built *built, const struct device_sync *sync, uint32_t *nodes,
			   size_t n_room)
{
	uint64_t launched_ns = sync->call.begin_ns + sync->is_copy,
		 end_ns = sync->call.end_ns + GRAPH_TOLERANCE_NS;
	bool is_for_one = sync->kind == WAIT_FOR_STREAM;
	uint64_t latest_ns = 0;
	size_t n = 0;

	for (size_t i = 0; i < built->n_streams; i++) {
		const struct stream *stream = &built->streams[i];
		size_t k = find_piece(stream, launched_ns, end_ns);

		if (k == stream->n || (sync->kind != WAIT_UNKNOWN && sync->context &&
				       sync->context != stream->pieces->context))
			continue;
		if (is_for_one && stream->pieces->stream != sync->stream)
			continue;
		/* Of an event it isn't known which stream it is in: the one that ended last. */
		if (!is_for_one && !is_for_all(sync)) {
			if (stream->pieces[k].end_ns > latest_ns)
				nodes[0] = stream->first_node + (uint32_t)k;
			latest_ns = stream->pieces[k].end_ns > latest_ns ? stream->pieces[k].end_ns
									 : latest_ns;
			n = 1;
		} else if (n < n_room) {
			nodes[n++] = stream->first_node + (uint32_t)k;
		}
	}
	built->n_guessed += n && !is_for_one && !is_for_all(sync);
	return n;
}
