/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a process shares while it waits to be recorded (TORSH_PROFILER_ENABLED=dormant): one page of
 * a file that only its user can open, mapped by the process and by `torsh start`. The file is named
 * by its user, PID namespace and pid, in the directory for temporary files of the process; its
 * mapping in /proc/PID/maps leads there. It is removed when the process ends or becomes another
 * program.
 */
#ifndef TORSH_AGENT_WIRE_DORMANT_PAGE_H
#define TORSH_AGENT_WIRE_DORMANT_PAGE_H

#include <stdatomic.h>
#include <stdint.h>

#define DORMANT_MAGIC UINT64_C(0x3174726f64726f74) /* "tordort1" */
#define DORMANT_VERSION 1u
#define DORMANT_FILE "torsh-dormant-" /* then the numbers of user, PID namespace, process */
#define DORMANT_BYTES 4096u
#define DORMANT_SOCKET_MAX 104u

/* What the hooks of the heap read at each call: values of enum pause in shim/pause.h. */
enum dormant_pause { DORMANT_ARMED = 0, DORMANT_SLEEPS = 2 };

enum dormant_state {
	DORMANT_WAITS, /* for its next call after pause is DORMANT_ARMED */
	DORMANT_STARTS,
	/* session has the socket; `torsh start` stores DORMANT_WAITS once that has ended */
	DORMANT_STARTED,
	DORMANT_FAILED, /* it is not recorded; the reason is on its stderr */
};

struct dormant_page {
	uint64_t magic;
	uint32_t version;
	uint32_t pid; /* in the process's PID namespace */
	_Atomic uint32_t state; /* enum dormant_state, stored by the process */
	/* the session to join, stored before pause; "": it begins one */
	char join[DORMANT_SOCKET_MAX];
	char session[DORMANT_SOCKET_MAX]; /* that it is in; complete before state */
	_Alignas(64) _Atomic uint32_t pause; /* enum dormant_pause */
};

_Static_assert(sizeof(struct dormant_page) <= DORMANT_BYTES, "it is one page");

#endif
