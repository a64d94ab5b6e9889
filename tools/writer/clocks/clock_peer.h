/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One place of TORSH_PROFILER_CLOCK_PEERS, as the probing thread sees it. If the address is one of
 * this host's interfaces, this writer binds it and answers there. Else it asks there. Where another
 * writer of this host answers already, it asks, and answers once that one has ended.
 */
#ifndef TORSH_WRITER_CLOCKS_CLOCK_PEER_H
#define TORSH_WRITER_CLOCKS_CLOCK_PEER_H

#include <sys/socket.h>

#include "tools/writer/clocks/clock_packet.h"
#include "tools/writer/clocks/clock_peers.h"

#define CLOCK_ASKED_MAX 16u /* requests that may still be answered */

/* What all peers share. Times are since zero_ns of CLOCK_MONOTONIC. */
struct clock_own {
	struct siphash_key key;
	uint64_t zero_ns;
	uint64_t clock; /* the same moment by the wall clock */
};

/* One exchange: own times, and the other's between them. */
struct clock_sample {
	uint64_t clock; /* the other's */
	uint64_t sent_ns, received_ns, replied_ns, returned_ns;
};

struct clock_counts {
	uint64_t sent, answered; /* own requests, and the replies to them */
	uint64_t replies; /* to others' requests */
	uint64_t refused; /* packets that are none of the job's */
};

struct clock_peer {
	struct clock_peer_name name;
	struct sockaddr_storage address;
	socklen_t n_address; /* 0: not resolved yet */
	bool is_any; /* the name is this host's own, but for loopback: answer on all addresses */
	int fd; /* -1: none */
	bool is_here; /* fd answers, else it asks */
	bool is_taken; /* the address is this host's, and in use */
	int error; /* errno of the last failure; 0: none */
	uint64_t bind_ns, ask_ns, first_ask_ns; /* when to bind again, to ask; 0: at once */
	uint64_t n_unanswered; /* in a row */
	struct {
		uint64_t nonce, sent_ns; /* nonce 0: none */
	} asked[CLOCK_ASKED_MAX];
	struct clock_counts counts;
	struct clock_sample best; /* with the shortest round trip of its window; clock 0: none */
	uint64_t n_windows;
};

/*
 * Bind, connect and ask as is due. Returns when it wants to be called again, in the time of
 * clock_own.
 */
uint64_t torsh_clock_peer_work(struct clock_peer *peer, const struct clock_own *own,
			       uint64_t now_ns);

/*
 * Take a packet. Returns false if there is none. *sample has an exchange, the best of its window,
 * if its clock is not 0.
 */
bool torsh_clock_peer_receive(struct clock_peer *peer, const struct clock_own *own,
			      struct clock_sample *sample);

/* Get the exchange of a window that has not ended; its clock is 0 if there is none. */
struct clock_sample torsh_clock_peer_last(const struct clock_peer *peer);

/* Close its socket. */
void torsh_clock_peer_close(struct clock_peer *peer);

/*
 * Put why nothing was learned from it, and return true; false: something was, or it is too early to
 * say.
 */
bool torsh_clock_peer_trouble(const struct clock_peer *peer, uint64_t now_ns, char *out, size_t n);

/* Returns whether it is an address of loopback. */
bool torsh_clock_is_loopback(const struct sockaddr_storage *address);

/* The time since own->zero_ns. */
uint64_t torsh_clock_own_ns(const struct clock_own *own);

#endif
