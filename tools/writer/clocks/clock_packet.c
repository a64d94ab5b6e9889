/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/clocks/clock_packet.h"

#include <endian.h>
#include <string.h>

#define VERSION 1u

static const char magic[8] = {'t', 'o', 'r', 's', 'h', 'c', 'l', 'k'};

/* As it is sent. */
struct wire_packet {
	char magic[8];
	uint32_t version, kind;
	uint64_t nonce, clock, received_ns, replied_ns, code;
};

_Static_assert(sizeof(struct wire_packet) == CLOCK_PACKET_BYTES, "without padding");

#define CODED_BYTES offsetof(struct wire_packet, code)

void torsh_clock_packet_write(const struct clock_packet *packet, const struct siphash_key *key,
			      uint8_t bytes[CLOCK_PACKET_BYTES])
{
	struct wire_packet wire = {
		.version = htole32(VERSION),
		.kind = htole32(packet->kind),
		.nonce = htole64(packet->nonce),
		.clock = htole64(packet->clock),
		.received_ns = htole64(packet->received_ns),
		.replied_ns = htole64(packet->replied_ns),
	};

	memcpy(wire.magic, magic, sizeof(magic));
	wire.code = htole64(torsh_siphash(key, &wire, CODED_BYTES));
	memcpy(bytes, &wire, sizeof(wire));
}

bool torsh_clock_packet_read(struct clock_packet *packet, const struct siphash_key *key,
			     const uint8_t *bytes, size_t n)
{
	struct wire_packet wire;

	if (n != sizeof(wire))
		return false;
	memcpy(&wire, bytes, sizeof(wire));
	if (memcmp(wire.magic, magic, sizeof(magic)) || le32toh(wire.version) != VERSION ||
	    le64toh(wire.code) != torsh_siphash(key, &wire, CODED_BYTES))
		return false;
	*packet = (struct clock_packet){
		.kind = le32toh(wire.kind),
		.nonce = le64toh(wire.nonce),
		.clock = le64toh(wire.clock),
		.received_ns = le64toh(wire.received_ns),
		.replied_ns = le64toh(wire.replied_ns),
	};
	return true;
}

bool torsh_clock_packet_answer(struct clock_packet *reply, const struct siphash_key *key,
			       const uint8_t *bytes, size_t n, uint64_t clock, uint64_t received_ns)
{
	if (!torsh_clock_packet_read(reply, key, bytes, n) || reply->kind != CLOCK_REQUEST)
		return false;
	reply->kind = CLOCK_REPLY;
	reply->clock = clock;
	reply->received_ns = received_ns;
	return true;
}
