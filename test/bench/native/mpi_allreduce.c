/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * mpi_allreduce CALLS: all-reduces of 8 bytes, one after the other. Rank 0 prints nanoseconds a
 * call, by the process's CPU time and by the wall clock. Compiled by mpicc.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double reduce(long n)
{
	double sum = 0, one = 1;

	for (long i = 0; i < n; i++)
		MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	return sum;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1;
	double cpu, wall, sum;
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	reduce(n / 10 + 1);
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
	wall = seconds(CLOCK_MONOTONIC);
	sum = reduce(n);
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	wall = seconds(CLOCK_MONOTONIC) - wall;
	if (!rank)
		printf("{\"cpu_ns\": %.1f, \"wall_ns\": %.1f, \"ranks\": %.0f, \"calls\": %ld}\n",
		       cpu * 1e9 / (double)n, wall * 1e9 / (double)n, sum, n + n / 10 + 1);
	MPI_Finalize();
	return 0;
}
