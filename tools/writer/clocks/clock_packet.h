/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The datagrams by which writers compare their clocks: a request and its reply have the same size,
 * little endian:
 *
 *	 0	8	"torshclk"
 *	 8	4	version, 1
 *	12	4	1: a request, 2: a reply
 *	16	8	nonce: random, of the request
 *	24	8	in a reply: when the answering writer's recording began, by the wall clock
 *	32	8	in a reply: when the request came, since that start
 *	40	8	in a reply: when the reply went, since that start
 *	48	8	SipHash-2-4 of the bytes before, with the job's key
 *
 * What a request lacks is 0.
 */
#ifndef TORSH_WRITER_CLOCKS_CLOCK_PACKET_H
#define TORSH_WRITER_CLOCKS_CLOCK_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/writer/clocks/siphash.h"

#define CLOCK_PACKET_BYTES 56u

enum clock_packet_kind { CLOCK_REQUEST = 1, CLOCK_REPLY = 2 };

/* Times in ns since the start of the answering writer's recording. */
struct clock_packet {
	uint32_t kind; /* enum clock_packet_kind */
	uint64_t nonce;
	uint64_t clock, received_ns, replied_ns;
};

/* Write a packet. */
void torsh_clock_packet_write(const struct clock_packet *packet, const struct siphash_key *key,
			      uint8_t bytes[CLOCK_PACKET_BYTES]);

/* Read one. Returns false if these n bytes are none, or were not made with the key. */
bool torsh_clock_packet_read(struct clock_packet *packet, const struct siphash_key *key,
			     const uint8_t *bytes, size_t n);

/*
 * Make the reply to n bytes that came at received_ns, but for its replied_ns. Returns false if they
 * are no request of the job.
 */
bool torsh_clock_packet_answer(struct clock_packet *reply, const struct siphash_key *key,
			       const uint8_t *bytes, size_t n, uint64_t clock,
			       uint64_t received_ns);

#endif
