/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Exchanges of times with writers of other hosts: FORMAT.md, "Clocks". */
#ifndef TORSH_RECORDING_CLOCKS_RECORDED_CLOCKS_H
#define TORSH_RECORDING_CLOCKS_RECORDED_CLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording.pb-c.h"

#define RECORDED_CLOCK_PEERS_MAX 16u

/* sent and returned since this recording's start, received and replied since the other's. */
struct recorded_exchange {
	uint64_t clock; /* the other recording's start by the wall clock */
	uint64_t sent_ns, received_ns, replied_ns, returned_ns;
};

struct recorded_clock_peer {
	char *name; /* HOST:PORT; NULL: this row is not there */
	bool is_here; /* the recording's writer answered there */
	uint64_t sent, answered, replies, refused;
	struct recorded_exchange *exchanges; /* as they were sent */
	size_t n_exchanges, exchanges_room;
};

struct recorded_clocks {
	/* CLOCK_MONOTONIC of equal ones is the same; 0: unknown */
	uint64_t kernel_clock, start_monotonic_ns;
	struct recorded_clock_peer peers[RECORDED_CLOCK_PEERS_MAX];
};

/* Load a row. Returns false if it is invalid. */
bool torsh_recorded_clocks_peer(struct recorded_clocks *clocks, const Torsh__ClockPeer *row);
bool torsh_recorded_clocks_exchanges(struct recorded_clocks *clocks,
				     const Torsh__ClockExchanges *row);

/* Free what they hold. */
void torsh_recorded_clocks_free(struct recorded_clocks *clocks);

#endif
