/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Communicators: who they are on all ranks, and how many calls they had. The name of one is that of
 * its parent, its number among the children of that, and the first of its processes, so that it is
 * the same on all its ranks without a message. Any thread.
 */
#ifndef TORSH_COLLECTORS_MPI_MPI_COMMS_H
#define TORSH_COLLECTORS_MPI_MPI_COMMS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/mpi/mpi.h"

#define MPI_COMM_NAME_BYTES 96

struct mpi_comm {
	_Atomic uint64_t handle; /* 0: free */
	uint32_t number; /* of its process_group */
	uint32_t rank, size; /* rank: of this process in it */
	_Atomic uint64_t n_calls; /* collectives so far */
	_Atomic uint64_t n_made; /* communicators made of it so far */
	_Atomic uint64_t n_prepared; /* persistent collectives */
	/*
	 * Receives that may take any message of several, and those begun while there is one: their
	 * messages are counted when they are complete. At present; so far.
	 */
	_Atomic uint32_t n_uncertain, n_joined;
	_Atomic bool is_lost; /* a receive ended unseen: its messages aren't counted any more */
	char name[MPI_COMM_NAME_BYTES];
};

/* The communicator with this handle; MPI_COMM_WORLD and MPI_COMM_SELF are added. NULL: unknown. */
struct mpi_comm *torsh_mpi_comm_find(uint64_t handle);

/* MPI is initialised: add MPI_COMM_WORLD, so that the process's rank is known. */
void torsh_mpi_comm_start(void);

/* Where a new communicator comes from. */
struct mpi_origin {
	struct mpi_comm *parent; /* NULL: unknown, and nothing is added */
	uint64_t order; /* among the children of the parent */
	const int *tag; /* of a creation by the members only, whose order is their own; else NULL */
	bool is_part; /* it may have fewer processes, or others' order */
	const char *function;
};

/* Add the communicator that was made. */
void torsh_mpi_comm_add(uint64_t handle, const struct mpi_origin *origin);

/* The communicator is about to be freed; its handle may be used again. */
void torsh_mpi_comm_forget(uint64_t handle);

/*
 * The number of earlier calls with this key; COLLECTIVE_NO_SEQUENCE without room for it. Of
 * messages by communicator, peer, tag and direction.
 */
uint64_t torsh_mpi_count_call(uint64_t key);

/* MPI is finalised. */
void torsh_mpi_comms_end(void);

#endif
