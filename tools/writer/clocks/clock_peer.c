/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/clocks/clock_peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "tools/writer/input/clock_conversion.h"

#define BIND_AGAIN_NS UINT64_C(1000000000)
/* At first often, so that a short run has some exchanges; then four a window. */
#define ASK_FAST_NS UINT64_C(20000000)
#define ASK_FAST 50u
#define ASK_NS UINT64_C(125000000)
#define ASK_SLOW_NS UINT64_C(2000000000) /* where nobody answers */
#define UNANSWERED_MAX 100u
/* Of a window the exchange with the shortest round trip is kept: at first a short one. */
#define WINDOW_NS UINT64_C(250000000)
#define WINDOWS_SHORT 2048u
#define WINDOW_LONG_NS UINT64_C(4000000000)
#define TROUBLE_AFTER_NS UINT64_C(1000000000)

uint64_t torsh_clock_own_ns(const struct clock_own *own)
{
	return torsh_clock_monotonic_ns() - own->zero_ns;
}

/* ---- sockets --------------------------------------------------------------------------------- */

static int open_socket(const struct clock_peer *peer)
{
	return socket(peer->address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static void set_any(struct sockaddr_storage *address)
{
	if (address->ss_family == AF_INET)
		((struct sockaddr_in *)address)->sin_addr.s_addr = htonl(INADDR_ANY);
	else
		((struct sockaddr_in6 *)address)->sin6_addr = in6addr_any;
}

static const void *bytes_of(const struct sockaddr *address, size_t *n)
{
	bool is_4 = address->sa_family == AF_INET;

	*n = is_4 ? sizeof(struct in_addr) : sizeof(struct in6_addr);
	return is_4 ? (const void *)&((const struct sockaddr_in *)address)->sin_addr
		    : (const void *)&((const struct sockaddr_in6 *)address)->sin6_addr;
}

bool torsh_clock_is_loopback(const struct sockaddr_storage *address)
{
	if (address->ss_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 ==
		       IN_LOOPBACKNET;
	return address->ss_family == AF_INET6 &&
	       IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

/* Some kernels are told to let addresses of others be bound: what counts are the interfaces. */
static bool is_own(const struct sockaddr_storage *address)
{
	const struct sockaddr *wanted = (const struct sockaddr *)address;
	struct ifaddrs *all;
	bool is_found = torsh_clock_is_loopback(address);

	if (is_found || getifaddrs(&all))
		return is_found;
	for (const struct ifaddrs *one = all; one && !is_found; one = one->ifa_next) {
		size_t n;
		const void *bytes = bytes_of(wanted, &n);

		is_found = one->ifa_addr && one->ifa_addr->sa_family == wanted->sa_family &&
			   !memcmp(bytes_of(one->ifa_addr, &n), bytes, n);
	}
	freeifaddrs(all);
	return is_found;
}

/* Returns whether this writer answers there from now on. */
static bool bind_here(struct clock_peer *peer)
{
	struct sockaddr_storage address = peer->address;
	int fd, error;

	if (!is_own(&address))
		return false;
	fd = open_socket(peer);
	if (fd < 0) {
		peer->error = errno;
		return false;
	}
	if (peer->is_any)
		set_any(&address);
	if (!bind(fd, (struct sockaddr *)&address, peer->n_address)) {
		torsh_clock_peer_close(peer);
		peer->fd = fd;
		peer->is_here = true;
		peer->is_taken = false;
		peer->error = 0;
		return true;
	}
	error = errno;
	close(fd);
	peer->is_taken = error == EADDRINUSE;
	if (error != EADDRNOTAVAIL)
		peer->error = error;
	return false;
}

static void connect_there(struct clock_peer *peer)
{
	int fd = open_socket(peer);

	if (fd >= 0 && !connect(fd, (struct sockaddr *)&peer->address, peer->n_address)) {
		peer->fd = fd;
		return;
	}
	peer->error = errno;
	if (fd >= 0)
		close(fd);
}

void torsh_clock_peer_close(struct clock_peer *peer)
{
	if (peer->fd >= 0)
		close(peer->fd);
	peer->fd = -1;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void ask(struct clock_peer *peer, const struct clock_own *own)
{
	struct clock_packet request = {.kind = CLOCK_REQUEST};
	uint8_t bytes[CLOCK_PACKET_BYTES];
	size_t slot = peer->counts.sent % CLOCK_ASKED_MAX;

	if (getrandom(&request.nonce, sizeof(request.nonce), GRND_NONBLOCK) !=
		    sizeof(request.nonce) ||
	    !request.nonce)
		return;
	torsh_clock_packet_write(&request, &own->key, bytes);
	peer->asked[slot].nonce = request.nonce;
	peer->asked[slot].sent_ns = torsh_clock_own_ns(own);
	peer->counts.sent++;
	peer->n_unanswered++;
	if (!peer->first_ask_ns)
		peer->first_ask_ns = peer->asked[slot].sent_ns;
	if (send(peer->fd, bytes, sizeof(bytes), MSG_NOSIGNAL) < 0 && errno != EAGAIN)
		peer->error = errno;
}

static uint64_t pause_ns(const struct clock_peer *peer)
{
	if (peer->n_unanswered > UNANSWERED_MAX)
		return ASK_SLOW_NS;
	return peer->counts.sent < ASK_FAST ? ASK_FAST_NS : ASK_NS;
}

uint64_t torsh_clock_peer_work(struct clock_peer *peer, const struct clock_own *own,
			       uint64_t now_ns)
{
	if (!peer->n_address || (peer->fd >= 0 && peer->is_here))
		return UINT64_MAX;
	if (now_ns >= peer->bind_ns) {
		/* An address of another host stays one. */
		peer->bind_ns = UINT64_MAX;
		if (bind_here(peer))
			return UINT64_MAX;
		if (peer->is_taken)
			peer->bind_ns = now_ns + BIND_AGAIN_NS;
	}
	if (now_ns >= peer->ask_ns) {
		if (peer->fd < 0)
			connect_there(peer);
		if (peer->fd >= 0)
			ask(peer, own);
		peer->ask_ns = now_ns + (peer->fd < 0 ? ASK_SLOW_NS : pause_ns(peer));
	}
	return peer->ask_ns < peer->bind_ns ? peer->ask_ns : peer->bind_ns;
}

/* ---- exchanges ------------------------------------------------------------------------------- */

static uint64_t round_trip(const struct clock_sample *sample)
{
	return (sample->returned_ns - sample->sent_ns) - (sample->replied_ns - sample->received_ns);
}

/* Returns the sample that an ended window leaves; its clock is 0 if there is none. */
static struct clock_sample keep(struct clock_peer *peer, const struct clock_sample *sample)
{
	uint64_t window_ns = peer->n_windows < WINDOWS_SHORT ? WINDOW_NS : WINDOW_LONG_NS;
	struct clock_sample ended = {0};

	if (peer->best.clock == sample->clock &&
	    sample->sent_ns / window_ns == peer->best.sent_ns / window_ns) {
		if (round_trip(sample) < round_trip(&peer->best))
			peer->best = *sample;
		return ended;
	}
	ended = peer->best;
	peer->best = *sample;
	peer->n_windows++;
	return ended;
}

/* Returns when a request was sent, once; 0: there is none with that nonce. */
static uint64_t take_asked(struct clock_peer *peer, uint64_t nonce)
{
	for (size_t i = 0; nonce && i < CLOCK_ASKED_MAX; i++) {
		if (peer->asked[i].nonce == nonce) {
			peer->asked[i].nonce = 0;
			return peer->asked[i].sent_ns;
		}
	}
	return 0;
}

/* An answer that took less than no time, or comes from no recording, is none. */
static bool read_reply(struct clock_peer *peer, const struct clock_own *own, const uint8_t *bytes,
		       size_t n, struct clock_sample *sample)
{
	uint64_t returned_ns = torsh_clock_own_ns(own);
	struct clock_packet reply;

	if (!torsh_clock_packet_read(&reply, &own->key, bytes, n) || reply.kind != CLOCK_REPLY)
		return false;
	*sample = (struct clock_sample){.clock = reply.clock,
					.sent_ns = take_asked(peer, reply.nonce),
					.received_ns = reply.received_ns,
					.replied_ns = reply.replied_ns,
					.returned_ns = returned_ns};
	return sample->sent_ns && sample->clock && reply.received_ns <= INT64_MAX / 2 &&
	       reply.replied_ns >= reply.received_ns &&
	       reply.replied_ns - reply.received_ns <= returned_ns - sample->sent_ns;
}

static void answer(struct clock_peer *peer, const struct clock_own *own, uint8_t *bytes, size_t n,
		   const struct sockaddr_storage *from, socklen_t n_from)
{
	struct clock_packet reply;

	if (!torsh_clock_packet_answer(&reply, &own->key, bytes, n, own->clock,
				       torsh_clock_own_ns(own))) {
		peer->counts.refused++;
		return;
	}
	reply.replied_ns = torsh_clock_own_ns(own);
	torsh_clock_packet_write(&reply, &own->key, bytes);
	if (sendto(peer->fd, bytes, CLOCK_PACKET_BYTES, MSG_NOSIGNAL, (const struct sockaddr *)from,
		   n_from) == (ssize_t)CLOCK_PACKET_BYTES)
		peer->counts.replies++;
}

bool torsh_clock_peer_receive(struct clock_peer *peer, const struct clock_own *own,
			      struct clock_sample *sample)
{
	uint8_t bytes[CLOCK_PACKET_BYTES];
	struct sockaddr_storage from;
	socklen_t n_from = sizeof(from);
	struct clock_sample exchange;
	ssize_t n;

	*sample = (struct clock_sample){0};
	/* With MSG_TRUNC a longer packet has its own length, which no packet of the job has. */
	n = recvfrom(peer->fd, bytes, sizeof(bytes), MSG_TRUNC, (struct sockaddr *)&from, &n_from);
	if (n < 0) {
		if (errno == EAGAIN)
			return false;
		/* An earlier packet came back: nobody listens there, or no way leads there. */
		peer->error = errno;
		return true;
	}
	if (peer->is_here) {
		answer(peer, own, bytes, (size_t)n, &from, n_from);
	} else if (read_reply(peer, own, bytes, (size_t)n, &exchange)) {
		peer->counts.answered++;
		peer->n_unanswered = 0;
		peer->error = 0;
		*sample = keep(peer, &exchange);
	} else {
		peer->counts.refused++;
	}
	return true;
}

struct clock_sample torsh_clock_peer_last(const struct clock_peer *peer)
{
	return peer->best;
}

bool torsh_clock_peer_trouble(const struct clock_peer *peer, uint64_t now_ns, char *out, size_t n)
{
	const char *host = peer->name.host, *port = peer->name.port;

	if (peer->is_here || peer->counts.answered)
		return false;
	if (peer->n_address && peer->fd < 0 && peer->error)
		snprintf(out, n, "%s:%s: %s", host, port, strerror(peer->error));
	else if (!peer->first_ask_ns || now_ns - peer->first_ask_ns < TROUBLE_AFTER_NS)
		return false;
	else if (peer->is_taken)
		snprintf(out, n, "%s:%s is taken by another program, which doesn't answer", host,
			 port);
	else if (peer->error)
		snprintf(out, n, "%s:%s: %s", host, port, strerror(peer->error));
	else
		snprintf(out, n,
			 "%s:%s doesn't answer: nobody of the job listens there, it has another "
			 "key, or a firewall is between",
			 host, port);
	return true;
}
