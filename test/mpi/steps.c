/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * steps FOLDER N LATE: N all-reduces with a nap before each; rank LATE (-1: none) sleeps longer.
 * Writes into FOLDER/RANK when it entered each, by CLOCK_MONOTONIC.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LATE_NS 6000000L

static long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000L + now.tv_nsec;
}

int main(int argc, char **argv)
{
	int rank, n = atoi(argv[2]), late = atoi(argv[3]);
	const struct timespec nap = {0, 2000000L}, longer = {0, LATE_NS};
	double value[1000] = {0}, total[1000];
	char path[4096];
	FILE *file;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	snprintf(path, sizeof(path), "%s/%d", argv[1], rank);
	file = fopen(path, "w");
	for (int i = 0; i < n; i++) {
		/* Asleep, so that ranks that share a core are equal. */
		nanosleep(&nap, NULL);
		if (rank == late)
			nanosleep(&longer, NULL);
		fprintf(file, "%ld\n", now_ns());
		MPI_Allreduce(value, total, 1000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	}
	fclose(file);
	MPI_Finalize();
	return 0;
}
