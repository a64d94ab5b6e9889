/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The tracks of a trace for Perfetto: threads, asynchronous spans, counters. */
#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/export/perfetto/perfetto.h"

void torsh_perfetto_put_track(struct perfetto *perfetto, const struct sequence *sequence,
			      Perfetto__TrackDescriptor *track)
{
	Perfetto__TracePacket packet = torsh_perfetto_make_packet(sequence);

	track->has_uuid = 1;
	track->uuid = ++perfetto->n_tracks;
	packet.track_descriptor = track;
	torsh_perfetto_packet(perfetto->output, &packet);
}

uint64_t torsh_perfetto_add_track(struct perfetto *perfetto, const struct sequence *sequence,
				  const char *name, const Perfetto__CounterDescriptor *counter)
{
	Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;

	track.has_parent_uuid = 1;
	track.parent_uuid = sequence->process_track;
	track.name = (char *)(uintptr_t)name;
	track.counter = (Perfetto__CounterDescriptor *)(uintptr_t)counter;
	torsh_perfetto_put_track(perfetto, sequence, &track);
	return track.uuid;
}

uint64_t torsh_perfetto_add_inner(struct perfetto *perfetto, const struct sequence *sequence,
				  uint64_t outer, const char *name)
{
	Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;

	track.has_parent_uuid = 1;
	track.parent_uuid = outer;
	track.name = (char *)(uintptr_t)name;
	torsh_perfetto_put_track(perfetto, sequence, &track);
	return track.uuid;
}

uint64_t torsh_perfetto_thread_track(struct perfetto *perfetto, struct sequence *sequence,
				     uint32_t row)
{
	const struct recorded_process *process = sequence->process;
	Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
	Perfetto__ThreadDescriptor thread = PERFETTO__THREAD_DESCRIPTOR__INIT;

	if (row >= process->n_threads)
		row = (uint32_t)sequence->n_threads - 1;
	if (sequence->threads[row])
		return sequence->threads[row];
	thread.has_pid = thread.has_tid = 1;
	thread.pid = (int32_t)process->pid;
	thread.tid = (int32_t)torsh_trace_tid(process, row);
	thread.thread_name = row < process->n_threads ? process->threads[row].name : NULL;
	track.has_parent_uuid = 1;
	track.parent_uuid = sequence->process_track;
	track.thread = &thread;
	torsh_perfetto_put_track(perfetto, sequence, &track);
	return sequence->threads[row] = track.uuid;
}

uint64_t torsh_perfetto_take_async(struct perfetto *perfetto, struct sequence *sequence)
{
	for (size_t i = 0; i < sequence->n_async; i++) {
		if (!sequence->async[i].is_used) {
			sequence->async[i].is_used = true;
			return sequence->async[i].track;
		}
	}
	sequence->async = torsh_array_reserve(sequence->async, sequence->n_async,
					      &sequence->async_room, sizeof(*sequence->async));
	sequence->async[sequence->n_async++] = (struct async_track){
		.track = torsh_perfetto_add_track(perfetto, sequence, "asynchronous", NULL),
		.is_used = true};
	return sequence->async[sequence->n_async - 1].track;
}

void torsh_perfetto_free_async(struct sequence *sequence, uint64_t track)
{
	for (size_t i = 0; i < sequence->n_async; i++) {
		if (sequence->async[i].track == track)
			sequence->async[i].is_used = false;
	}
}

struct counter *torsh_perfetto_counter(struct perfetto *perfetto, struct sequence *sequence,
				       uint64_t key, const char *name,
				       Perfetto__CounterDescriptor__Unit unit)
{
	Perfetto__CounterDescriptor descriptor = PERFETTO__COUNTER_DESCRIPTOR__INIT;
	struct counter *counter;

	for (size_t i = 0; i < sequence->n_counters; i++) {
		if (sequence->counters[i].key == key)
			return &sequence->counters[i];
	}
	sequence->counters =
		torsh_array_reserve(sequence->counters, sequence->n_counters,
				    &sequence->counters_room, sizeof(*sequence->counters));
	counter = &sequence->counters[sequence->n_counters++];
	counter->key = key;
	descriptor.has_unit = 1;
	descriptor.unit = unit;
	counter->track = torsh_perfetto_add_track(perfetto, sequence, name, &descriptor);
	return counter;
}
