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

/* mpi_comms.c: the communicator, window or file that the call is about; NULL: not known. */
struct mpi_comm *torsh_mpi_comm_of(const struct mpi_call_now *now);

/* mpi_messages.c: sends, receives, and messages that are taken. */
void torsh_mpi_messages_begin(struct mpi_hook *hook, const struct mpi_call_now *now);
void torsh_mpi_messages_end(struct mpi_hook *hook, const struct mpi_call_now *now);

/*
 * A receive that began as uncertain or not is complete: the message is the status's, if there is
 * one.
 */
struct mpi_request;
void torsh_mpi_message_received(const struct mpi_request *request, const void *status);

/*
 * Send the begin of a message, which is counted; 0: it has no event. Of a receive the hook gets
 * what is not certain about it.
 */
uint32_t torsh_mpi_send_counted(const struct mpi_comm *comm, const char *name, int peer, int tag);
uint32_t torsh_mpi_receive_counted(struct mpi_hook *hook, struct mpi_comm *comm, const char *name,
				   int peer, int tag);

/* mpi_prepared.c: persistent requests, which are made, started, and freed. */
void torsh_mpi_prepared(const struct mpi_call_now *now);
void torsh_mpi_start(struct mpi_hook *hook, const struct mpi_call_now *now);
void torsh_mpi_started(const struct mpi_call_now *now);
void torsh_mpi_prepared_forget(uint64_t handle);

/* mpi_accesses.c: memory of other ranks, and files. */
void torsh_mpi_access_begin(struct mpi_hook *hook, const struct mpi_call_now *now);
void torsh_mpi_access_end(struct mpi_hook *hook, const struct mpi_call_now *now);

/* A read is complete: the bytes are the status's. */
void torsh_mpi_access_read(uint32_t number, const void *status);

/* mpi_waits.c: waits, tests, and requests that end unseen. */
void torsh_mpi_waits_begin(struct mpi_hook *hook, const struct mpi_call_now *now);
void torsh_mpi_waits_end(struct mpi_hook *hook, const struct mpi_call_now *now);

/* mpi_statuses.c: pass statuses of the agent's own where the program wants none; n: how many. */
void torsh_mpi_want_statuses(struct mpi_hook *hook, const struct mpi_call_now *now, uint32_t n);

/* Status i of those that the call stores; NULL: the program wants none. */
const void *torsh_mpi_status_of(const struct mpi_hook *hook, const struct mpi_call_now *now,
				uint32_t i);

#endif
