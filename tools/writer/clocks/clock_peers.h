/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The places at which writers of a job answer for their clocks: TORSH_PROFILER_CLOCK_PEERS. */
#ifndef TORSH_WRITER_CLOCKS_CLOCK_PEERS_H
#define TORSH_WRITER_CLOCKS_CLOCK_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLOCK_PEERS_MAX 16u
#define CLOCK_NAME_BYTES 256u
#define CLOCK_PORT_DEFAULT "29417"

struct clock_peer_name {
	char host[CLOCK_NAME_BYTES], port[6];
};

struct clock_peer_names {
	struct clock_peer_name items[CLOCK_PEERS_MAX];
	size_t n;
};

/*
 * Read "HOST[:PORT],…"; an address of IPv6 with a port stands in brackets. Returns false if the
 * text is no such list, or one of more than CLOCK_PEERS_MAX.
 */
bool torsh_clock_peers_parse(struct clock_peer_names *names, const char *text);

/* What the identity of a process says of its job; the texts are the identity's. */
struct clock_job {
	const char *master, *port, *id; /* NULL: unknown */
	uint64_t world_size, local_world_size; /* 0: unknown */
};

/* Read n bytes of consecutive "name=value" strings, as agent/launch/launcher.h puts them. */
void torsh_clock_job_read(struct clock_job *job, const char *pairs, size_t n);

#endif
