/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * more FOLDER: MPI's persistent requests, collectives of neighbors, windows and files, with what
 * each call was on a line of JSON in FOLDER/RANK, as calls.c writes it; the file is FOLDER/file.
 * Prints sums of what it received.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static FILE *notes;
static int rank, size;
static long sum;

struct group {
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

#define DO(group, kind, name, in, out, peer, ...)                   \
	do {                                                        \
		long began = now_ns();                              \
                                                                    \
		MPI_##name(__VA_ARGS__);                            \
		note(group, kind, #name, in, out, peer, -1, began); \
	} while (0)

/* Without blocking, until the given request is waited for. */
#define START(group, kind, name, in, out, peer, ...)            \
	do {                                                    \
		MPI_##name(__VA_ARGS__);                        \
		note(group, kind, #name, in, out, peer, -1, 0); \
	} while (0)

/* ---- persistent requests --------------------------------------------------------------------- */

static void note_pair(const struct group *of, int left, int right, int n)
{
	note(of, "receive", "Recv_init", 0, n, left, 3, 0);
	note(of, "send", "Send_init", n, 0, right, 3, 0);
}

static void persistent(const struct group *of)
{
	int right = (rank + 1) % size, left = (rank + size - 1) % size, flag, index, n, done[4];
	char mine[100] = "z", theirs[100], other[100];
	MPI_Request requests[4], one;
	MPI_Status status;

	MPI_Recv_init(theirs, 40, MPI_CHAR, left, 3, MPI_COMM_WORLD, &requests[0]);
	MPI_Send_init(mine, 40, MPI_CHAR, right, 3, MPI_COMM_WORLD, &requests[1]);
	for (int i = 0; i < 3; i++) {
		MPI_Startall(2, requests);
		note_pair(of, left, right, 40);
		MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
		sum += theirs[0];
	}
	/* One after the other, and in between a message that isn't persistent. */
	MPI_Start(&requests[0]);
	note(of, "receive", "Recv_init", 0, 12, left, 3, 0);
	MPI_Isend(mine, 12, MPI_CHAR, right, 3, MPI_COMM_WORLD, &one);
	note(of, "send", "Isend", 12, 0, right, 3, 0);
	for (flag = 0; !flag;)
		MPI_Test(&requests[0], &flag, &status);
	MPI_Wait(&one, MPI_STATUS_IGNORE);
	MPI_Startall(2, requests);
	note_pair(of, left, right, 40);
	for (int left_over = 2; left_over; left_over--) {
		MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
		sum += index >= 0;
	}
	MPI_Startall(2, requests);
	note_pair(of, left, right, 40);
	for (int n_done = 0; n_done < 2; n_done += n)
		MPI_Waitsome(2, requests, &n, done, MPI_STATUSES_IGNORE);
	MPI_Startall(2, requests);
	note_pair(of, left, right, 40);
	for (int n_done = 0; n_done < 2; n_done += flag && index >= 0)
		MPI_Testany(2, requests, &index, &flag, MPI_STATUS_IGNORE);
	/* From anyone; the other ranks' messages come later. */
	MPI_Recv_init(other, 100, MPI_CHAR, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &requests[2]);
	MPI_Ssend_init(mine, 9, MPI_CHAR, right, 4, MPI_COMM_WORLD, &requests[3]);
	for (int i = 0; i < 2; i++) {
		MPI_Start(&requests[2]);
		note(of, "receive", "Recv_init", 0, 9, left, 4, 0);
		MPI_Start(&requests[3]);
		note(of, "send", "Ssend_init", 9, 0, right, 4, 0);
		MPI_Wait(&requests[2], &status);
		MPI_Wait(&requests[3], MPI_STATUS_IGNORE);
		MPI_Wait(&requests[3], MPI_STATUS_IGNORE); /* nothing was started */
	}
	for (int i = 0; i < 4; i++)
		MPI_Request_free(&requests[i]);
}

#if MPI_VERSION >= 4
/* The ranks start them in different orders. */
static void persistent_collectives(const struct group *of)
{
	double mine[8] = {1}, theirs[8], all[8 * 64];
	MPI_Request requests[3], some[2];

	MPI_Allreduce_init(mine, theirs, 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
			   &requests[0]);
	MPI_Gather_init(mine, 4, MPI_DOUBLE, all, 4, MPI_DOUBLE, 1, MPI_COMM_WORLD, MPI_INFO_NULL,
			&requests[1]);
	MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]);
	for (int i = 0; i < 3; i++) {
		some[0] = requests[(rank + i) % 2];
		some[1] = requests[1 - (rank + i) % 2];
		MPI_Startall(2, some);
		for (int k = 0; k < 2; k++) {
			if (some[k] == requests[0])
				note(of, "collective", "Allreduce_init", 64, 64, -1, -1, 0);
			else
				note(of, "collective", "Gather_init", 32, rank == 1 ? 32 * size : 0,
				     1, -1, 0);
		}
		MPI_Waitall(2, some, MPI_STATUSES_IGNORE);
		sum += (long)theirs[0];
	}
	MPI_Start(&requests[2]);
	note(of, "collective", "Barrier_init", 0, 0, -1, -1, 0);
	MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
	for (int i = 0; i < 3; i++)
		MPI_Request_free(&requests[i]);
}
#endif

/* ---- neighbors ------------------------------------------------------------------------------- */

/* Four ranks in a row: those at its ends have one neighbor. */
static void row_of_ranks(void)
{
	int counts[2], places[2] = {0, 32}, me, n_real;
	double mine[64], theirs[64];
	MPI_Datatype types[2] = {MPI_DOUBLE, MPI_INT};
	MPI_Aint offsets[2] = {0, 256};
	struct group of = {.name = "world/1:0", .size = size};
	MPI_Request request;
	MPI_Comm row;
	long in, out;

	MPI_Cart_create(MPI_COMM_WORLD, 1, &size, (int[]){0}, 0, &row);
	MPI_Comm_rank(row, &me);
	of.rank = me;
	for (int i = 0; i < 64; i++)
		mine[i] = rank + i;
	n_real = (me > 0) + (me < size - 1);
	DO(&of, "collective", Neighbor_allgather, 24, 24 * n_real, -1, mine, 3, MPI_DOUBLE, theirs,
	   3, MPI_DOUBLE, row);
	DO(&of, "collective", Neighbor_alltoall, 16 * n_real, 16 * n_real, -1, mine, 2, MPI_DOUBLE,
	   theirs, 2, MPI_DOUBLE, row);
	/* To each side as many as the lower of the two ranks has. */
	counts[0] = me;
	counts[1] = me + 1;
	in = 8 * ((me > 0 ? counts[0] : 0) + (me < size - 1 ? counts[1] : 0));
	DO(&of, "collective", Neighbor_alltoallv, in, in, -1, mine, counts, places, MPI_DOUBLE,
	   theirs, counts, places, MPI_DOUBLE, row);
	out = 8 * ((me > 0 ? me : 0) + (me < size - 1 ? me + 2 : 0));
	counts[0] = me;
	counts[1] = me + 2;
	START(&of, "collective", Ineighbor_allgatherv, 8 * (me + 1), out, -1, mine, me + 1,
	      MPI_DOUBLE, theirs, counts, places, MPI_DOUBLE, row, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	counts[0] = counts[1] = 2;
	types[0] = types[1] = MPI_INT;
	DO(&of, "collective", Neighbor_alltoallw, 8 * n_real, 8 * n_real, -1, mine, counts, offsets,
	   types, theirs, counts, offsets, types, row);
	MPI_Comm_free(&row);
}

/* Each gets from its left one and from itself, and gives to its right one and to itself. */
static void graph_of_ranks(void)
{
	int sources[] = {(rank + size - 1) % size, rank}, targets[] = {(rank + 1) % size, rank};
	struct group of = {.name = "world/2:0", .rank = rank, .size = size};
	double mine[8] = {3}, theirs[16];
	MPI_Comm graph;

	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sources, MPI_UNWEIGHTED, 2, targets,
				       MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
	DO(&of, "collective", Neighbor_alltoall, 64, 64, -1, mine, 4, MPI_DOUBLE, theirs, 4,
	   MPI_DOUBLE, graph);
	sum += (long)theirs[4];
	MPI_Comm_free(&graph);
}

/* ---- windows --------------------------------------------------------------------------------- */

static void windows(void)
{
	struct group of = {.name = "world/3", .rank = rank, .size = size};
	int right = (rank + 1) % size, one = 1, old, zero = 0;
	double *memory, mine[16], got[16] = {0};
	MPI_Request request;
	MPI_Win window;

	for (int i = 0; i < 16; i++)
		mine[i] = rank * 100 + i;
	MPI_Win_allocate(64 * sizeof(double), sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD,
			 &memory, &window);
	memset(memory, 0, 64 * sizeof(double));
	DO(&of, "collective", Win_fence, 0, 0, -1, 0, window);
	DO(&of, "put", Put, 5 * 8, 0, right, mine, 5, MPI_DOUBLE, right, 0, 5, MPI_DOUBLE, window);
	DO(&of, "put", Put, 0, 0, right, mine, 0, MPI_DOUBLE, right, 0, 0, MPI_DOUBLE, window);
	MPI_Put(mine, 5, MPI_DOUBLE, MPI_PROC_NULL, 0, 5, MPI_DOUBLE, window); /* to nobody */
	DO(&of, "collective", Win_fence, 0, 0, -1, 0, window);
	sum += (long)memory[4];
	DO(&of, "get", Get, 0, 3 * 8, right, got, 3, MPI_DOUBLE, right, 0, 3, MPI_DOUBLE, window);
	DO(&of, "collective", Win_fence, 0, 0, -1, 0, window);
	sum += (long)got[2];
	DO(&of, "put", Accumulate, 2 * 8, 0, right, mine, 2, MPI_DOUBLE, right, 8, 2, MPI_DOUBLE,
	   MPI_SUM, window);
	DO(&of, "collective", Win_fence, 0, 0, -1, 0, window);
	DO(&of, "sync", Win_lock, 0, 0, right, MPI_LOCK_SHARED, right, 0, window);
	DO(&of, "update", Get_accumulate, 2 * 8, 2 * 8, right, mine, 2, MPI_DOUBLE, got, 2,
	   MPI_DOUBLE, right, 16, 2, MPI_DOUBLE, MPI_SUM, window);
	DO(&of, "sync", Win_flush, 0, 0, right, right, window);
	DO(&of, "update", Fetch_and_op, 4, 4, right, &one, &old, MPI_INT, right, 24, MPI_SUM,
	   window);
	DO(&of, "update", Compare_and_swap, 4, 4, right, &one, &zero, &old, MPI_INT, right, 25,
	   window);
	START(&of, "put", Rput, 6 * 8, 0, right, mine, 6, MPI_DOUBLE, right, 32, 6, MPI_DOUBLE,
	      window, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	START(&of, "get", Rget, 0, 7 * 8, right, got, 7, MPI_DOUBLE, right, 40, 7, MPI_DOUBLE,
	      window, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	DO(&of, "sync", Win_flush_local, 0, 0, right, right, window);
	DO(&of, "sync", Win_unlock, 0, 0, right, right, window);
	DO(&of, "sync", Win_lock_all, 0, 0, -1, 0, window);
	DO(&of, "sync", Win_flush_all, 0, 0, -1, window);
	DO(&of, "sync", Win_unlock_all, 0, 0, -1, window);
	MPI_Win_free(&window);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void files(const char *folder)
{
	struct group of = {.name = "world/4", .rank = rank, .size = size};
	char path[4096], mine[64], theirs[64];
	MPI_Request request;
	MPI_Status status;
	MPI_File file;
	int n;

	memset(mine, 'a' + rank, sizeof(mine));
	snprintf(path, sizeof(path), "%s/file", folder);
	MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
	DO(&of, "write", File_write_at, 20, 0, -1, file, rank * 64, mine, 20, MPI_CHAR,
	   MPI_STATUS_IGNORE);
	DO(&of, "write", File_write_at_all, 44, 0, -1, file, rank * 64 + 20, mine, 11, MPI_INT,
	   &status);
	MPI_Barrier(MPI_COMM_WORLD);
	note(&(struct group){"world", rank, size}, "collective", "Barrier", 0, 0, -1, -1, 0);
	DO(&of, "read", File_read_at, 0, 30, -1, file, (rank + 1) % size * 64, theirs, 30, MPI_CHAR,
	   MPI_STATUS_IGNORE);
	sum += theirs[29];
	/* Behind the end there is nothing: the last rank gets less than it wants. */
	DO(&of, "read", File_read_at, 0, rank == size - 1 ? 14 : 40, -1, file, rank * 64 + 50,
	   theirs, 40, MPI_CHAR, MPI_STATUS_IGNORE);
	/* Open MPI 4.1 has the whole count in this one's status all the same. */
	MPI_File_read_at_all(file, rank * 64 + 50, theirs, 40, MPI_CHAR, &status);
	MPI_Get_count(&status, MPI_CHAR, &n);
	note(&of, "read", "File_read_at_all", 0, n, -1, -1, 0);
	START(&of, "read", File_iread_at, 0, 16, -1, file, rank * 64 + 5, theirs, 16, MPI_CHAR,
	      &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	START(&of, "write", File_iwrite_at, 8, 0, -1, file, rank * 64, mine, 8, MPI_CHAR, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_File_seek(file, rank * 64, MPI_SEEK_SET);
	DO(&of, "read", File_read, 0, 8, -1, file, theirs, 8, MPI_CHAR, MPI_STATUS_IGNORE);
	DO(&of, "write", File_write_all, 4, 0, -1, file, mine, 4, MPI_CHAR, MPI_STATUS_IGNORE);
	DO(&of, "write", File_write, 3, 0, -1, file, mine, 3, MPI_CHAR, MPI_STATUS_IGNORE);
	MPI_File_seek(file, rank * 64, MPI_SEEK_SET);
	START(&of, "read", File_read_all_begin, 0, 10, -1, file, theirs, 10, MPI_CHAR);
	MPI_File_read_all_end(file, theirs, MPI_STATUS_IGNORE);
	sum += theirs[9];
	MPI_File_close(&file);
}

int main(int argc, char **argv)
{
	struct group world;
	char path[4096];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	world = (struct group){"world", rank, size};
	snprintf(path, sizeof(path), "%s/%d", argv[1], rank);
	notes = fopen(path, "w");
	fprintf(notes, "{\"pid\": %d, \"rank\": %d, \"size\": %d}\n", getpid(), rank, size);
	persistent(&world);
#if MPI_VERSION >= 4
	persistent_collectives(&world);
#endif
	row_of_ranks();
	graph_of_ranks();
	windows();
	files(argv[1]);
	if (fclose(notes))
		return 1;
	MPI_Finalize();
	printf("rank %d of %d: %ld\n", rank, size, sum);
	return 0;
}
