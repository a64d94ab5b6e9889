/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The packets that begin a process in a trace for Perfetto. */
#include <inttypes.h>
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/export/perfetto/perfetto.h"

/*
 * Times of the trace count from the start of the recording; the snapshot relates them to the wall
 * clock. Times of a sequence are differences, the first one to 0.
 */
static void put_clocks(struct perfetto *perfetto, const struct sequence *sequence)
{
	Perfetto__ClockSnapshot snapshot = PERFETTO__CLOCK_SNAPSHOT__INIT;
	Perfetto__ClockSnapshot__Clock clocks[3], *all[3];
	Perfetto__TracePacketDefaults defaults = PERFETTO__TRACE_PACKET_DEFAULTS__INIT;
	Perfetto__TracePacket packet = torsh_perfetto_make_packet(sequence);
	const struct trace_merge *merge = perfetto->trace->merge;
	static const uint32_t ids[] = {CLOCK_ID_BOOTTIME, CLOCK_ID_REALTIME, CLOCK_ID_STEP};

	for (size_t i = 0; i < 3; i++) {
		perfetto__clock_snapshot__clock__init(&clocks[i]);
		clocks[i].has_clock_id = clocks[i].has_timestamp = 1;
		clocks[i].clock_id = ids[i];
		all[i] = &clocks[i];
	}
	clocks[1].timestamp =
		merge ? merge->origin_realtime_ns : perfetto->trace->recording->start_realtime_ns;
	clocks[2].has_is_incremental = clocks[2].is_incremental = 1;
	snapshot.n_clocks = 3;
	snapshot.clocks = all;
	defaults.has_timestamp_clock_id = 1;
	defaults.timestamp_clock_id = CLOCK_ID_STEP;
	packet.has_sequence_flags = packet.has_first_packet_on_sequence =
		packet.first_packet_on_sequence = 1;
	packet.sequence_flags = STATE_BEGINS;
	packet.clock_snapshot = &snapshot;
	packet.trace_packet_defaults = &defaults;
	torsh_perfetto_packet(perfetto->output, &packet);
}

static void put_process(struct perfetto *perfetto, struct sequence *sequence)
{
	const struct recorded_process *process = sequence->process;
	Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
	Perfetto__ProcessDescriptor descriptor = PERFETTO__PROCESS_DESCRIPTOR__INIT;
	char *label;

	descriptor.has_pid = 1;
	descriptor.pid = (int32_t)process->pid;
	descriptor.process_name = (char *)(uintptr_t)torsh_recording_program_name(process);
	if (perfetto->trace->merge) {
		label = (char *)(uintptr_t)perfetto->trace->merge->label;
		descriptor.n_process_labels = 1;
		descriptor.process_labels = &label;
	}
	descriptor.n_cmdline = process->n_arguments;
	descriptor.cmdline = process->arguments;
	track.process = &descriptor;
	torsh_perfetto_put_track(perfetto, sequence, &track);
	sequence->process_track = track.uuid;
}

/* Put a slice with known begin and end, before the events: its packets have absolute times. */
static void put_whole(struct perfetto *perfetto, const struct sequence *sequence,
		      Perfetto__TrackEvent *event, uint64_t at_ns)
{
	Perfetto__TracePacket packet = torsh_perfetto_make_packet(sequence);

	packet.has_sequence_flags = packet.has_timestamp = packet.has_timestamp_clock_id = 1;
	packet.sequence_flags = STATE_NEEDED;
	packet.timestamp = torsh_trace_time(perfetto->trace, at_ns);
	packet.timestamp_clock_id = CLOCK_ID_BOOTTIME;
	packet.track_event = event;
	torsh_perfetto_packet(perfetto->output, &packet);
}

static void put_step(struct perfetto *perfetto, const struct sequence *sequence, uint64_t track,
		     const struct step *step)
{
	Perfetto__TrackEvent event = PERFETTO__TRACK_EVENT__INIT;
	uint64_t category = CATEGORY_STEP;
	char name[32];

	snprintf(name, sizeof(name), "step %" PRIu64, step->number);
	event.has_type = event.has_track_uuid = 1;
	event.type = PERFETTO__TRACK_EVENT__TYPE__SLICE_BEGIN;
	event.track_uuid = track;
	event.name = name;
	event.n_category_iids = 1;
	event.category_iids = &category;
	put_whole(perfetto, sequence, &event, step->start_ns);
	event = (Perfetto__TrackEvent)PERFETTO__TRACK_EVENT__INIT;
	event.has_type = event.has_track_uuid = 1;
	event.type = PERFETTO__TRACK_EVENT__TYPE__SLICE_END;
	event.track_uuid = track;
	put_whole(perfetto, sequence, &event, step->end_ns);
}

static void put_steps(struct perfetto *perfetto, const struct sequence *sequence)
{
	const struct steps *steps =
		&torsh_prepass_of(perfetto->trace->prepass, sequence->process)->steps;
	uint64_t track;
	char *name;

	/* Requests are ranges, and may overlap. */
	if (!steps->n || steps->slices)
		return;
	name = torsh_need_text("steps (%s)", torsh_step_rule_texts[steps->rule]);
	track = torsh_perfetto_add_track(perfetto, sequence, name, NULL);
	free(name);
	for (size_t i = 0; i < steps->n; i++) {
		if (torsh_trace_has(perfetto->trace, steps->items[i].start_ns))
			put_step(perfetto, sequence, track, &steps->items[i]);
	}
}

/* Put the process's memory as the writer sampled it. */
static void put_series(struct perfetto *perfetto, const struct sequence *sequence)
{
	static const char *const names[] = {"heap (sampled)", "mapped (sampled)",
					    "resident set (sampled)"};
	const struct recorded_process *process = sequence->process;
	Perfetto__CounterDescriptor descriptor = PERFETTO__COUNTER_DESCRIPTOR__INIT;

	descriptor.has_unit = 1;
	descriptor.unit = PERFETTO__COUNTER_DESCRIPTOR__UNIT__SIZE_BYTES;
	for (size_t k = 0; k < 3 && process->n_series; k++) {
		uint64_t track =
			torsh_perfetto_add_track(perfetto, sequence, names[k], &descriptor);

		for (size_t i = 0; i < process->n_series; i++) {
			const struct recorded_sample *sample = &process->series[i];
			const uint64_t values[] = {sample->heap_bytes, sample->mapped_bytes,
						   sample->rss_bytes};
			Perfetto__TrackEvent event = PERFETTO__TRACK_EVENT__INIT;

			if (!torsh_trace_has(perfetto->trace, sample->at_ns))
				continue;
			event.has_type = event.has_track_uuid = event.has_counter_value = 1;
			event.type = PERFETTO__TRACK_EVENT__TYPE__COUNTER;
			event.track_uuid = track;
			event.counter_value = (int64_t)values[k];
			put_whole(perfetto, sequence, &event, sample->at_ns);
		}
	}
}

void torsh_perfetto_start(struct perfetto *perfetto, struct sequence *sequence,
			  const struct recorded_process *process, uint32_t id)
{
	*sequence =
		(struct sequence){.process = process, .id = id, .flow_base = (uint64_t)id << 40};
	sequence->n_threads = process->n_threads + 1;
	sequence->threads =
		torsh_need_items(NULL, 0, sequence->n_threads, sizeof(*sequence->threads));
	sequence->n_stacks = process->tables->n_stacks;
	sequence->named_stacks =
		torsh_need_items(NULL, 0, sequence->n_stacks + 1, sizeof(*sequence->named_stacks));
	sequence->named = torsh_need_items(NULL, 0, process->tables->n_functions + 1,
					   sizeof(*sequence->named));
	torsh_key_index_create(&sequence->strings);
	put_clocks(perfetto, sequence);
	torsh_perfetto_put_names(perfetto, sequence);
	put_process(perfetto, sequence);
	put_steps(perfetto, sequence);
	put_series(perfetto, sequence);
}

void torsh_perfetto_free(struct sequence *sequence)
{
	free(sequence->threads);
	free(sequence->named);
	free(sequence->named_stacks);
	free(sequence->counters);
	free(sequence->async);
	torsh_perfetto_samples_free(sequence->samples);
	torsh_key_index_destroy(&sequence->strings);
}
