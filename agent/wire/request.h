/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Requests to a running writer, over the socket at which its session's processes connect: one
 * SOCK_SEQPACKET message each way, then both close. The writer answers only its own user.
 */
#ifndef TORSH_AGENT_WIRE_REQUEST_H
#define TORSH_AGENT_WIRE_REQUEST_H

#include <stdint.h>

#define REQUEST_MAGIC UINT64_C(0x3171726873726f74) /* "torshrq1" */
#define REQUEST_VERSION 1u
#define REQUEST_SITES_MAX 4096u

enum request_verb {
	REQUEST_STATUS = 1, /* the running processes, and the largest allocation sites of each */
	REQUEST_SNAPSHOT = 2, /* everything that the recording lacks so far */
	REQUEST_PAUSE = 3,
	REQUEST_RESUME = 4,

	/* 5 is unused. */
	REQUEST_END = 6, /* the recording ends now, even if processes continue */
	/* as SNAPSHOT, of blocks that were judged: the process is stopped meanwhile */
	REQUEST_JUDGED_SNAPSHOT = 7,
	REQUEST_KEEP = 8, /* a copy of the session as it is now, beside its recording */
	/*
	 * the recording ends now, and all its processes wait to be armed again; -EOPNOTSUPP if one
	 * of them can't (may_rest of its channel)
	 */
	REQUEST_STOP = 9,
};

struct request {
	uint64_t magic;
	uint32_t version;
	uint32_t verb; /* enum request_verb */
	uint32_t n_sites; /* STATUS: limit per process, <= REQUEST_SITES_MAX; else 0 */
	/* JUDGED_SNAPSHOT: whose blocks are judged, 0: of all; KEEP: of the session; else 0 */
	uint32_t pid;
};

_Static_assert(sizeof(struct request) == 24, "request is part of the protocol");

/*
 * With result 0, its SCM_RIGHTS descriptors are: for STATUS and both SNAPSHOTs a memfd with a
 * recording; for the latter also the session's recording, read-only; its first recording_bytes
 * precede the memfd.
 */
struct request_answer {
	uint64_t magic;
	uint32_t version;
	int32_t result; /* 0 or -errno; PAUSE, RESUME: -EALREADY if nothing changed */
	uint64_t recording_bytes; /* KEEP: the number of the copy */
	uint32_t n_processes; /* recorded now */
	uint32_t writer_pid; /* in the writer's PID namespace */
};

_Static_assert(sizeof(struct request_answer) == 32, "request_answer is part of the protocol");

#endif
