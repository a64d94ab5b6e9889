/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Another tool's library, preloaded beside the agent: it counts calls by wrappers of its own, as
 * PMPI foresees it, and prints the sums of each rank.
 */
#include <mpi.h>
#include <stdio.h>

static int n_all_reduces, n_sends;

int MPI_Allreduce(const void *sent, void *received, int n, MPI_Datatype type, MPI_Op op,
		  MPI_Comm comm)
{
	n_all_reduces++;
	return PMPI_Allreduce(sent, received, n, type, op, comm);
}

int MPI_Send(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
	n_sends++;
	return PMPI_Send(data, n, type, to, tag, comm);
}

int MPI_Finalize(void)
{
	printf("the tool saw %d all-reduces and %d sends\n", n_all_reduces, n_sends);
	return PMPI_Finalize();
}
