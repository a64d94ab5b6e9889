/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Packets of a trace for Perfetto. */
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/export/perfetto/perfetto.h"

#define PACKET_BYTES_MAX 64 /* bound on a packet's fixed fields: five one-byte tags and numbers */

void torsh_perfetto_packet(struct output_stream *output, const Perfetto__TracePacket *packet)
{
	size_t n = perfetto__trace_packet__get_packed_size(packet);
	uint8_t head[16], *end = head, *bytes = torsh_need(malloc(n));

	*end++ = TRACE_PACKET;
	end = perfetto_varint(end, n);
	torsh_stream_put(output, head, (size_t)(end - head));
	perfetto__trace_packet__pack(packet, bytes);
	torsh_stream_put(output, bytes, n);
	free(bytes);
}

Perfetto__TracePacket torsh_perfetto_make_packet(const struct sequence *sequence)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;

	packet.has_trusted_packet_sequence_id = 1;
	packet.trusted_packet_sequence_id = sequence->id;
	return packet;
}

void torsh_perfetto_annotate(struct event_bytes *event, enum annotation name, enum tag tag,
			     uint64_t value)
{
	uint8_t *length;

	perfetto_check_room(event);
	event->at = perfetto_varint(event->at, EVENT_ANNOTATION);
	length = event->at++;
	perfetto_field(event, ANNOTATION_NAME, name);
	if (tag == ANNOTATION_DOUBLE)
		perfetto_eight(event, tag, value);
	else
		perfetto_field(event, tag, value);
	*length = (uint8_t)(event->at - length - 1);
}

static void put_event(struct perfetto *perfetto, const struct sequence *sequence, enum tag tag,
		      const struct event_bytes *event, uint64_t at, bool is_whole)
{
	size_t n_event = (size_t)(event->at - event->bytes), n;
	uint8_t packet[PACKET_BYTES_MAX], *end = packet, *out;

	assert(n_event <= EVENT_BYTES_MAX);
	end = perfetto_varint(perfetto_varint(end, PACKET_TIMESTAMP), at);
	end = perfetto_varint(perfetto_varint(end, PACKET_SEQUENCE), sequence->id);
	end = perfetto_varint(perfetto_varint(end, PACKET_FLAGS), STATE_NEEDED);
	if (is_whole)
		end = perfetto_varint(perfetto_varint(end, PACKET_CLOCK), CLOCK_ID_BOOTTIME);
	end = perfetto_varint(perfetto_varint(end, tag), n_event);
	/* The event's bytes, preceded by their length. */
	n = (size_t)(end - packet) + n_event;
	out = (uint8_t *)torsh_stream_reserve(perfetto->output, 1 + VARINT_BYTES_MAX + n);
	*out++ = TRACE_PACKET;
	out = perfetto_varint(out, n);
	memcpy(out, packet, (size_t)(end - packet));
	out += end - packet;
	memcpy(out, event->bytes, n_event);
	out += n_event;
	perfetto->output->n = (size_t)((char *)out - perfetto->output->buffer);
}

static void put_next(struct perfetto *perfetto, struct sequence *sequence, enum tag tag,
		     const struct event_bytes *event, uint64_t at_ns)
{
	bool is_late;

	at_ns = torsh_trace_time(perfetto->trace, at_ns);
	is_late = at_ns < sequence->last_ns;
	put_event(perfetto, sequence, tag, event, is_late ? at_ns : at_ns - sequence->last_ns,
		  is_late);
	if (!is_late)
		sequence->last_ns = at_ns;
}

void torsh_perfetto_event(struct perfetto *perfetto, struct sequence *sequence,
			  const struct event_bytes *event, uint64_t at_ns)
{
	put_next(perfetto, sequence, PACKET_EVENT, event, at_ns);
}

void torsh_perfetto_sample_packet(struct perfetto *perfetto, struct sequence *sequence,
				  const struct event_bytes *sample, uint64_t at_ns)
{
	put_next(perfetto, sequence, PACKET_SAMPLE, sample, at_ns);
}

void torsh_perfetto_past_event(struct perfetto *perfetto, const struct sequence *sequence,
			       const struct event_bytes *event, uint64_t at_ns)
{
	put_event(perfetto, sequence, PACKET_EVENT, event, torsh_trace_time(perfetto->trace, at_ns),
		  true);
}
