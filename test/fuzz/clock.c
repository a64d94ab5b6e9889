/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A datagram at the writer's port for clocks; with an odd last byte the rest gets a right code, so
 * that what lies behind it is reached. Then the same bytes as a list of places and as an identity.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/writer/clocks/clock_packet.h"
#include "tools/writer/clocks/clock_peers.h"

#define BYTES_MAX 4096u

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

static void read_packet(const uint8_t *bytes, size_t n)
{
	const struct siphash_key key = {{1, 2}};
	struct clock_packet packet;
	uint8_t copy[BYTES_MAX], reply[CLOCK_PACKET_BYTES];

	memcpy(copy, bytes, n);
	if (n >= CLOCK_PACKET_BYTES && bytes[n - 1] & 1) {
		uint64_t code = torsh_siphash(&key, copy, CLOCK_PACKET_BYTES - sizeof(code));

		memcpy(copy + CLOCK_PACKET_BYTES - sizeof(code), &code, sizeof(code));
		n = CLOCK_PACKET_BYTES;
	}
	if (!torsh_clock_packet_answer(&packet, &key, copy, n, 3, 4))
		return;
	torsh_clock_packet_write(&packet, &key, reply);
	if (!torsh_clock_packet_read(&packet, &key, reply, sizeof(reply)) ||
	    packet.kind != CLOCK_REPLY || memcmp(reply + 16, copy + 16, 8) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	static struct clock_peer_names names;
	char text[BYTES_MAX + 1];
	struct clock_job job;

	if (n_bytes > BYTES_MAX)
		return 0;
	read_packet(bytes, n_bytes);
	memcpy(text, bytes, n_bytes);
	text[n_bytes] = '\0';
	torsh_clock_peers_parse(&names, text);
	/* An identity's last text ends with a NUL, too. */
	torsh_clock_job_read(&job, text, n_bytes);
	return 0;
}
