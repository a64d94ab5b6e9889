/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * any: rank 0 receives from any rank: with several such receives at once, then one after the other,
 * then from known ones; at the end one receive is cancelled, and another message comes after it.
 * Prints what rank 0 received: sender, bytes.
 */
#include <mpi.h>
#include <stdio.h>

#define AT_ONCE 6
#define ROUNDS 4

static void show(const char *how, const MPI_Status *status)
{
	int n;

	MPI_Get_count(status, MPI_CHAR, &n);
	printf("%s %d %d\n", how, status->MPI_SOURCE, n);
}

int main(int argc, char **argv)
{
	char data[64] = "", got[AT_ONCE][64];
	MPI_Request requests[AT_ONCE];
	MPI_Status statuses[AT_ONCE], status;
	int rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (rank) {
		/* Two for those at once, one for one after the other, one by its name. */
		for (int i = 0; i < ROUNDS; i++)
			MPI_Send(data, 10 * rank + i, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Send(data, 5, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
	} else {
		for (int i = 0; i < AT_ONCE; i++)
			MPI_Irecv(got[i], 64, MPI_CHAR, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD,
				  &requests[i]);
		MPI_Waitall(AT_ONCE, requests, statuses);
		for (int i = 0; i < AT_ONCE; i++)
			show("at once", &statuses[i]);
		for (int i = 1; i < size; i++) {
			MPI_Recv(got[0], 64, MPI_CHAR, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status);
			show("in turn", &status);
		}
		for (int left = (size - 1) * (ROUNDS - 1) - AT_ONCE; left > 0; left--) {
			/* Whoever has one left: who came first is not known. */
			MPI_Probe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status);
			MPI_Recv(got[0], 64, MPI_CHAR, status.MPI_SOURCE, 1, MPI_COMM_WORLD,
				 &status);
			show("by name", &status);
		}
		MPI_Irecv(got[0], 64, MPI_CHAR, 1, 99, MPI_COMM_WORLD, &requests[0]);
		MPI_Cancel(&requests[0]);
		MPI_Wait(&requests[0], &status);
		MPI_Barrier(MPI_COMM_WORLD);
		for (int i = 1; i < size; i++)
			MPI_Recv(got[0], 64, MPI_CHAR, i, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	MPI_Finalize();
	return 0;
}
