/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Events of MPI's calls. All keep errno. */
#ifndef TORSH_COLLECTORS_MPI_MPI_EVENTS_H
#define TORSH_COLLECTORS_MPI_MPI_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/wire/event.h"
#include "collectors/mpi/mpi_bytes.h"

/* CLOCK_MONOTONIC, in ns. */
uint64_t torsh_mpi_now(void);

/*
 * Send the begin of a collective or a message; name: of its function. Its source and number are
 * set. Returns the number, 0: nothing is recorded here.
 */
uint32_t torsh_mpi_send_begin(const struct event_collective *begin, const char *name);

/* Send what it moved; does nothing for number 0, as the next two. */
void torsh_mpi_send_moved(const struct event_collective_moved *moved);

/* It is complete. */
void torsh_mpi_send_end(uint32_t number, bool has_failed);

/* A thread waited for it from begin_ns on. */
void torsh_mpi_send_wait(uint32_t number, uint64_t begin_ns, uint64_t duration_ns);

#endif
