/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TORSH_COLLECTORS_MPI_MPI_BYTES_H
#define TORSH_COLLECTORS_MPI_MPI_BYTES_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/mpi/mpi.h"

struct mpi_bytes {
	bool is_known;
	uint64_t in, out; /* that this rank gives, and gets */
};

/*
 * Bytes of a collective on a communicator of that size, with this process as that rank. Only after
 * the call has succeeded: a type that isn't valid would end the program.
 */
struct mpi_bytes torsh_mpi_bytes(const struct mpi_arguments *arguments, const struct mpi_layout *at,
				 uint32_t rank, uint32_t size);

/* Bytes of a message with the count and the type at these positions; likewise. */
struct mpi_bytes torsh_mpi_message_bytes(const struct mpi_arguments *arguments, uint8_t count,
					 uint8_t type);

#endif
