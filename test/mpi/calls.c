/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * calls FOLDER: MPI's collectives, messages and communicators, with what each of them was on a line
 * of JSON in FOLDER/RANK, in the words of this program. Prints sums of what it received.
 */
#include <errno.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static FILE *notes;
static int rank, size;
static long sum;

/* The communicator's name here: the members' ranks, and the order in which they made it. */
struct group {
	MPI_Comm comm;
	const char *name;
	int rank, size;
};

static long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000L + now.tv_nsec;
}

static void note(const struct group *group, const char *kind, const char *name, long in, long out,
		 int peer, int tag, long began)
{
	fprintf(notes,
		"{\"group\": \"%s\", \"group_size\": %d, \"group_rank\": %d, \"kind\": \"%s\", \"name\": \"MPI_%s\", "
		"\"in\": %ld, \"out\": %ld, \"peer\": %d, \"tag\": %d, \"ns\": %ld}\n",
		group->name, group->size, group->rank, kind, name, in, out, peer, tag,
		began ? now_ns() - began : -1);
}

/* One collective: what it moves, by this program's own arithmetic. */
#define DO(group, name, in, out, root, ...)                                 \
	do {                                                                \
		long began = now_ns();                                      \
                                                                            \
		errno = 77;                                                 \
		MPI_##name(__VA_ARGS__);                                    \
		note(group, "collective", #name, in, out, root, -1, began); \
	} while (0)

/* The same without blocking, until the given request is waited for. */
#define START(group, name, in, out, root, ...)                          \
	do {                                                            \
		MPI_##name(__VA_ARGS__);                                \
		note(group, "collective", #name, in, out, root, -1, 0); \
	} while (0)

#define N 24

static void collectives(const struct group *of)
{
	int n = of->size, me = of->rank, counts[64], places[64], all = 0;
	double mine[64 * N], theirs[64 * N];
	MPI_Comm comm = of->comm;
	long b = sizeof(double), part;

	for (int i = 0; i < n; i++) {
		counts[i] = i + 1;
		places[i] = all;
		all += counts[i];
	}
	part = (me + 1) * b;
	for (int i = 0; i < 64 * N; i++)
		mine[i] = rank + i;
	DO(of, Barrier, 0, 0, -1, comm);
	DO(of, Bcast, me ? 0 : N * b, me ? N * b : 0, 0, mine, N, MPI_DOUBLE, 0, comm);
	DO(of, Reduce, N * b, me == n - 1 ? N * b : 0, n - 1, mine, theirs, N, MPI_DOUBLE, MPI_SUM,
	   n - 1, comm);
	DO(of, Allreduce, N * b, N * b, -1, mine, theirs, N, MPI_DOUBLE, MPI_SUM, comm);
	sum += (long)theirs[3];
	DO(of, Allreduce, 3 * 4, 3 * 4, -1, MPI_IN_PLACE, (int[]){1, 2, 3}, 3, MPI_INT, MPI_MAX,
	   comm);
	DO(of, Scan, N * b, N * b, -1, mine, theirs, N, MPI_DOUBLE, MPI_SUM, comm);
	DO(of, Exscan, N * b, me ? N * b : 0, -1, mine, theirs, N, MPI_DOUBLE, MPI_SUM, comm);
	DO(of, Allgather, N * b, N * b * n, -1, mine, N, MPI_DOUBLE, theirs, N, MPI_DOUBLE, comm);
	DO(of, Allgatherv, part, all * b, -1, mine, me + 1, MPI_DOUBLE, theirs, counts, places,
	   MPI_DOUBLE, comm);
	DO(of, Alltoall, N * b * n, N * b * n, -1, mine, N, MPI_DOUBLE, theirs, N, MPI_DOUBLE,
	   comm);
	sum += (long)theirs[N * (n - 1)];
	for (int i = 0; i < n; i++) {
		counts[i] = me + i;
		places[i] = i * N;
	}
	DO(of, Alltoallv, (n * me + n * (n - 1) / 2) * b, (n * me + n * (n - 1) / 2) * b, -1, mine,
	   counts, places, MPI_DOUBLE, theirs, counts, places, MPI_DOUBLE, comm);
	DO(of, Gather, N * b, me ? 0 : N * b * n, 0, mine, N, MPI_DOUBLE, theirs, N, MPI_DOUBLE, 0,
	   comm);
	DO(of, Scatter, me ? 0 : N * b * n, N * b, 0, mine, N, MPI_DOUBLE, theirs, N, MPI_DOUBLE, 0,
	   comm);
	for (int i = 0; i < n; i++)
		counts[i] = i + 1;
	DO(of, Gatherv, part, me ? 0 : all * b, 0, mine, me + 1, MPI_DOUBLE, theirs, counts, places,
	   MPI_DOUBLE, 0, comm);
	DO(of, Scatterv, me ? 0 : all * b, part, 0, mine, counts, places, MPI_DOUBLE, theirs,
	   me + 1, MPI_DOUBLE, 0, comm);
	DO(of, Reduce_scatter, all * b, part, -1, mine, theirs, counts, MPI_DOUBLE, MPI_SUM, comm);
	DO(of, Reduce_scatter_block, 2 * n * b, 2 * b, -1, mine, theirs, 2, MPI_DOUBLE, MPI_SUM,
	   comm);
}

static void typed(const struct group *of)
{
	int n = of->size, counts[64], places[64];
	MPI_Datatype types[64], pair;
	double mine[256] = {0}, theirs[256];

	MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
	MPI_Type_commit(&pair);
	for (int i = 0; i < n; i++) {
		types[i] = i % 2 ? pair : MPI_DOUBLE;
		counts[i] = 1;
		places[i] = i * 16;
	}
	/* Between two ranks the types have to be alike: those of one parity are. */
	for (int i = 0; i < n; i++) {
		if ((i + of->rank) % 2)
			counts[i] = 0;
		types[i] = of->rank % 2 ? pair : MPI_DOUBLE;
	}
	DO(of, Alltoallw, (n / 2) * (of->rank % 2 ? 16 : 8), (n / 2) * (of->rank % 2 ? 16 : 8), -1,
	   mine, counts, places, types, theirs, counts, places, types, of->comm);
	DO(of, Bcast, of->rank == 1 ? 3 * 16 : 0, of->rank == 1 ? 0 : 3 * 16, 1, mine, 3, pair, 1,
	   of->comm);
	MPI_Type_free(&pair);
}

static void without_blocking(const struct group *of)
{
	MPI_Request requests[4];
	MPI_Status statuses[4];
	double mine[N] = {1}, theirs[N], most[N], copies[64 * N];
	long b = sizeof(double) * N;
	int flag = 0;

	START(of, Ibarrier, 0, 0, -1, of->comm, &requests[0]);
	START(of, Iallreduce, b, b, -1, mine, theirs, N, MPI_DOUBLE, MPI_SUM, of->comm,
	      &requests[1]);
	START(of, Ireduce, b, of->rank == 1 ? b : 0, 1, mine, most, N, MPI_DOUBLE, MPI_MAX, 1,
	      of->comm, &requests[2]);
	START(of, Iallgather, b, b * of->size, -1, mine, N, MPI_DOUBLE, copies, N, MPI_DOUBLE,
	      of->comm, &requests[3]);
	MPI_Waitall(4, requests, statuses);
	START(of, Ibcast, of->rank ? 0 : b, of->rank ? b : 0, 0, mine, N, MPI_DOUBLE, 0, of->comm,
	      &requests[0]);
	while (!flag)
		MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
	sum += (long)theirs[0];
}

/* Each rank to its right neighbour, with several tags. */
static void messages(const struct group *of)
{
	int right = (of->rank + 1) % of->size, left = (of->rank + of->size - 1) % of->size;
	char mine[100] = "x", theirs[4][100];
	MPI_Request requests[4];
	MPI_Status status;
	int done[4], n_done = 0, i;
	long began;

	for (i = 0; i < 2; i++) {
		MPI_Irecv(theirs[i], 100, MPI_CHAR, left, 5, of->comm, &requests[i]);
		note(of, "receive", "Irecv", 0, 10 + i, left, 5, 0);
	}
	for (i = 0; i < 2; i++) {
		began = now_ns();
		MPI_Send(mine, 10 + i, MPI_CHAR, right, 5, of->comm);
		note(of, "send", "Send", 10 + i, 0, right, 5, began);
	}
	MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
	began = now_ns();
	MPI_Sendrecv(mine, 7, MPI_CHAR, right, 6, theirs[0], 50, MPI_CHAR, left, 6, of->comm,
		     MPI_STATUS_IGNORE);
	note(of, "send", "Sendrecv", 7, 0, right, 6, began);
	note(of, "receive", "Sendrecv", 0, 7, left, 6, began);
	MPI_Isend(mine, 20, MPI_CHAR, right, 7, of->comm, &requests[0]);
	note(of, "send", "Isend", 20, 0, right, 7, 0);
	MPI_Issend(mine, 21, MPI_CHAR, right, 8, of->comm, &requests[1]);
	note(of, "send", "Issend", 21, 0, right, 8, 0);
	began = now_ns();
	MPI_Recv(theirs[0], 100, MPI_CHAR, MPI_ANY_SOURCE, 7, of->comm, &status);
	note(of, "receive", "Recv", 0, 20, status.MPI_SOURCE, status.MPI_TAG, began);
	MPI_Irecv(theirs[1], 100, MPI_CHAR, left, MPI_ANY_TAG, of->comm, &requests[2]);
	MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
	note(of, "receive", "Irecv", 0, 21, left, 8, 0);
	while (n_done < 2) {
		int n;

		MPI_Waitsome(2, requests, &n, done, MPI_STATUSES_IGNORE);
		n_done = n == MPI_UNDEFINED ? 2 : n_done + n;
	}
	/* To nobody: no message. */
	MPI_Send(mine, 9, MPI_CHAR, MPI_PROC_NULL, 1, of->comm);
	MPI_Recv(theirs[0], 9, MPI_CHAR, MPI_PROC_NULL, 1, of->comm, MPI_STATUS_IGNORE);
}

/* A message that is taken from the queue first, as mpi4py does it. */
static void taken(const struct group *of)
{
	int right = (of->rank + 1) % of->size, left = (of->rank + of->size - 1) % of->size, n;
	char mine[100] = "y", theirs[100];
	MPI_Request request;
	MPI_Message message;
	MPI_Status status;
	long began;

	MPI_Isend(mine, 33, MPI_CHAR, right, 9, of->comm, &request);
	note(of, "send", "Isend", 33, 0, right, 9, 0);
	began = now_ns();
	MPI_Mprobe(MPI_ANY_SOURCE, 9, of->comm, &message, &status);
	MPI_Get_count(&status, MPI_CHAR, &n);
	MPI_Mrecv(theirs, n, MPI_CHAR, &message, MPI_STATUS_IGNORE);
	note(of, "receive", "Mrecv", 0, 33, left, 9, began);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	sum += theirs[0] + n;
}

static void within(struct group *of, const char *name, MPI_Comm comm)
{
	*of = (struct group){.comm = comm, .name = name};
	MPI_Comm_rank(comm, &of->rank);
	MPI_Comm_size(comm, &of->size);
}

/* The other ways to make a communicator, after three of MPI_COMM_WORLD. */
static void other_communicators(void)
{
	MPI_Comm copy, grid, row, host;
	MPI_Request request;
	struct group group;

	MPI_Comm_idup(MPI_COMM_WORLD, &copy, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	within(&group, "world/4", copy);
	collectives(&group);
	MPI_Comm_free(&copy);
	MPI_Cart_create(MPI_COMM_WORLD, 2, (int[]){2, 2}, (int[]){0, 0}, 0, &grid);
	within(&group, "world/5:0", grid);
	collectives(&group);
	MPI_Cart_sub(grid, (int[]){0, 1}, &row);
	within(&group, rank < 2 ? "world/5:0/1:0" : "world/5:0/1:2", row);
	collectives(&group);
	MPI_Comm_free(&row);
	MPI_Comm_free(&grid);
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
	within(&group, "world/6:0", host);
	collectives(&group);
	MPI_Comm_free(&host);
}

/* Communicators that not all ranks get. */
static void some_ranks(void)
{
	MPI_Comm parts, nested;
	MPI_Group all, some;
	struct group group;
	int members[2] = {3, 1};

	MPI_Comm_split(MPI_COMM_WORLD, rank == 2 ? MPI_UNDEFINED : 0, rank, &parts);
	if (parts != MPI_COMM_NULL) {
		within(&group, "world/2:0", parts);
		collectives(&group);
		MPI_Comm_dup(parts, &nested);
		within(&group, "world/2:0/1", nested);
		collectives(&group);
		MPI_Comm_free(&nested);
		MPI_Comm_free(&parts);
	}
	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Group_incl(all, 2, members, &some);
	MPI_Comm_create(MPI_COMM_WORLD, some, &parts);
	if (parts != MPI_COMM_NULL) {
		within(&group, "world/3:3", parts);
		collectives(&group);
		MPI_Comm_free(&parts);
	}
	if (rank % 2) {
		MPI_Comm_create_group(MPI_COMM_WORLD, some, 12, &parts);
		within(&group, "world/t12.1:3", parts);
		collectives(&group);
		MPI_Comm_free(&parts);
	}
	MPI_Group_free(&some);
	MPI_Group_free(&all);
}

int main(int argc, char **argv)
{
	struct group world, group;
	MPI_Comm comm, parts;
	char path[4096];

	MPI_Init(&argc, &argv);
	within(&world, "world", MPI_COMM_WORLD);
	rank = world.rank;
	size = world.size;
	snprintf(path, sizeof(path), "%s/%d", argv[1], rank);
	notes = fopen(path, "w");
	fprintf(notes, "{\"pid\": %d, \"rank\": %d, \"size\": %d}\n", getpid(), rank, size);
	collectives(&world);
	typed(&world);
	without_blocking(&world);
	messages(&world);
	taken(&world);

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	within(&group, "world/1", comm);
	messages(&group);
	collectives(&group);
	MPI_Comm_split(comm, rank % 2, -rank, &parts);
	within(&group, rank % 2 ? "world/1/1:3" : "world/1/1:2", parts);
	collectives(&group);
	without_blocking(&group);
	messages(&group);
	MPI_Comm_free(&parts);
	some_ranks();
	MPI_Comm_free(&comm);
	other_communicators();
	within(&group, "self", MPI_COMM_SELF);
	collectives(&group);
	if (fclose(notes))
		return 1;
	MPI_Finalize();
	printf("rank %d of %d: %ld\n", rank, size, sum);
	return 0;
}
