/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the parts of one call of MPI do: shim/hooks.h has the hook, which mpi_calls.c hands to the
 * file that the function belongs to. arguments are the call's, at is where they are.
 */
#ifndef TORSH_COLLECTORS_MPI_MPI_CALLS_H
#define TORSH_COLLECTORS_MPI_MPI_CALLS_H

#include <stdbool.h>

#include "collectors/mpi/mpi_comms.h"
#include "shim/hooks.h"
#include "shim/mpi/mpi.h"

struct mpi_call_now {
	const struct mpi_call *call;
	const struct mpi_arguments *arguments;
	bool has_failed; /* once it has returned */
};

/* mpi_messages.c: sends, receives, and messages that are taken. */
void torsh_mpi_messages_begin(struct mpi_hook *hook, const struct mpi_call_now *now);
void torsh_mpi_messages_end(struct mpi_hook *hook, const struct mpi_call_now *now);

/*
 * A receive that began as uncertain or not is complete: the message is the status's, if there is
 * one.
 */
struct mpi_request;
void torsh_mpi_message_received(const struct mpi_request *request, const void *status);

/* mpi_waits.c: waits, tests, and requests that end unseen. */
void torsh_mpi_waits_begin(struct mpi_hook *hook, const struct mpi_call_now *now);
void torsh_mpi_waits_end(struct mpi_hook *hook, const struct mpi_call_now *now);

/* mpi_statuses.c: pass statuses of the agent's own where the program wants none; n: how many. */
void torsh_mpi_want_statuses(struct mpi_hook *hook, const struct mpi_call_now *now, uint32_t n);

/* Status i of those that the call stores; NULL: the program wants none. */
const void *torsh_mpi_status_of(const struct mpi_hook *hook, const struct mpi_call_now *now,
				uint32_t i);

#endif
