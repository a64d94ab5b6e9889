/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Requests that are not complete, and messages that were taken from the queue and not received. A
 * call that waits takes those that it is about out of the table and chains them, so that nobody
 * else finds a handle which the library gives to another request at once. Any thread.
 */
#ifndef TORSH_COLLECTORS_MPI_MPI_REQUESTS_H
#define TORSH_COLLECTORS_MPI_MPI_REQUESTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct mpi_request {
	_Atomic uint64_t key; /* 0: free */
	uint32_t number; /* of the collective event; 0: none was sent */
	uint32_t comm; /* number of the communicator's group */
	uint64_t comm_handle;
	uint32_t next; /* index + 1 of the next in the chain */
	uint32_t at; /* index in the waiting call's array */
	uint32_t joined; /* of an uncertain receive: the communicator's n_joined */
	bool is_receive, is_uncertain, is_alone;
	bool is_persistent; /* the handle stays when it is complete */
	bool is_read; /* of a file */
	bool has_bytes;
	uint64_t bytes;
	/* Of a taken message. */
	uint32_t peer;
	uint64_t tag, sequence, begin_ns, duration_ns;
};

/* Keep a request under a handle, or with is_message a message. It is dropped without room. */
void torsh_mpi_request_put(uint64_t handle, bool is_message, const struct mpi_request *request);

/* Take the one with this handle out of the table. Returns index + 1, 0: there is none. */
uint32_t torsh_mpi_request_take(uint64_t handle, bool is_message);

/* The one with an index + 1 that torsh_mpi_request_take returned. */
struct mpi_request *torsh_mpi_request_at(uint32_t index);

/* Put it back: it isn't complete. */
void torsh_mpi_request_return(uint32_t index, uint64_t handle);

/* It is done: its place is free. */
void torsh_mpi_request_drop(uint32_t index);

#endif
