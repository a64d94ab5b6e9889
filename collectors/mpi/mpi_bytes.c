/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * From the counts and types of a call. Where the program may leave out one side (MPI_IN_PLACE, or
 * what only the root has to pass), the other one is read.
 */
#include "collectors/mpi/mpi_bytes.h"

#define FIRST_BUFFER 1 /* the argument that may be MPI_IN_PLACE, where it matters here */

/* One side of a call. */
struct side {
	const struct mpi_arguments *arguments;
	uint8_t count, type;
	bool is_known;
};

static uint64_t multiply(struct side *side, int64_t count, int64_t type_bytes)
{
	uint64_t bytes;

	if (count >= 0 && type_bytes >= 0 &&
	    !__builtin_mul_overflow((uint64_t)count, (uint64_t)type_bytes, &bytes))
		return bytes;
	side->is_known = false;
	return 0;
}

/* count elements */
static uint64_t one(struct side *side)
{
	return multiply(side, torsh_mpi_count(side->arguments, side->count),
			torsh_mpi_type_bytes(side->arguments, side->type));
}

/* The part of a rank in an array of counts. */
static uint64_t part(struct side *side, uint32_t rank)
{
	return multiply(side, torsh_mpi_count_of(side->arguments, side->count, rank),
			torsh_mpi_type_bytes(side->arguments, side->type));
}

static uint64_t parts(struct side *side, uint32_t size)
{
	int64_t type_bytes = torsh_mpi_type_bytes(side->arguments, side->type);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < size; i++)
		sum += multiply(side, torsh_mpi_count_of(side->arguments, side->count, i),
				type_bytes);
	return sum;
}

/* Each part has a type of its own; those without elements may have none that is valid. */
static uint64_t typed_parts(struct side *side, uint32_t size)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < size; i++) {
		int64_t n = torsh_mpi_count_of(side->arguments, side->count, i);

		if (n)
			sum += multiply(side, n,
					torsh_mpi_array_type_bytes(side->arguments, side->type, i));
	}
	return sum;
}

static struct mpi_bytes rooted(enum mpi_moves moves, struct side *sent, struct side *got,
			       uint32_t rank, uint32_t size, bool is_root)
{
	struct mpi_bytes bytes = {0};

	switch (moves) {
	case MPI_FROM_ROOT:
		*(is_root ? &bytes.in : &bytes.out) = one(got);
		break;
	case MPI_TO_ROOT:
		bytes.in = one(got);
		bytes.out = is_root ? bytes.in : 0;
		break;
	case MPI_GATHER:
		bytes.in = is_root ? one(got) : one(sent);
		bytes.out = is_root ? bytes.in * size : 0;
		break;
	case MPI_GATHER_PARTS:
		bytes.in = is_root ? part(got, rank) : one(sent);
		bytes.out = is_root ? parts(got, size) : 0;
		break;
	case MPI_SCATTER:
		bytes.out = is_root ? one(sent) : one(got);
		bytes.in = is_root ? bytes.out * size : 0;
		break;
	case MPI_SCATTER_PARTS:
		bytes.out = is_root ? part(sent, rank) : one(got);
		bytes.in = is_root ? parts(sent, size) : 0;
		break;
	default:
		break;
	}
	return bytes;
}

static struct mpi_bytes unrooted(enum mpi_moves moves, struct side *sent, struct side *got,
				 uint32_t rank, uint32_t size)
{
	struct mpi_bytes bytes = {0};

	switch (moves) {
	case MPI_SAME:
	case MPI_FROM_LOWER:
		bytes.in = one(got);
		bytes.out = moves == MPI_FROM_LOWER && !rank ? 0 : bytes.in;
		break;
	case MPI_ONE_TO_ALL:
		bytes.in = one(got);
		bytes.out = bytes.in * size;
		break;
	case MPI_PART_TO_ALL:
		bytes.in = part(got, rank);
		bytes.out = parts(got, size);
		break;
	case MPI_ALL_TO_ALL:
		bytes.in = bytes.out = one(got) * size;
		break;
	case MPI_PARTS_TO_ALL:
		bytes.out = parts(got, size);
		bytes.in = sent ? parts(sent, size) : bytes.out;
		break;
	case MPI_TYPES_TO_ALL:
		bytes.out = typed_parts(got, size);
		bytes.in = sent ? typed_parts(sent, size) : bytes.out;
		break;
	case MPI_ALL_TO_PART:
		bytes.in = parts(got, size);
		bytes.out = part(got, rank);
		break;
	case MPI_ALL_TO_ONE:
		bytes.out = one(got);
		bytes.in = bytes.out * size;
		break;
	default:
		break;
	}
	return bytes;
}

/* ---- neighbors ------------------------------------------------------------------------------- */

static bool is_missing(const struct mpi_neighbors *neighbors, uint32_t i)
{
	return i < MPI_NEIGHBORS_KNOWN && neighbors->missing >> i & 1;
}

/* What all of them together get, or give: by the same count, by counts, or by counts and types. */
static uint64_t of_neighbors(struct side *side, const struct mpi_neighbors *neighbors, uint32_t n,
			     enum mpi_moves moves)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (is_missing(neighbors, i))
			continue;
		if (moves == MPI_NEIGHBORS || moves == MPI_ONE_TO_NEIGHBORS)
			sum += one(side);
		else if (moves != MPI_TYPES_TO_NEIGHBORS)
			sum += part(side, i);
		else if (torsh_mpi_count_of(side->arguments, side->count, i))
			sum += multiply(side, torsh_mpi_count_of(side->arguments, side->count, i),
					torsh_mpi_array_type_bytes(side->arguments, side->type, i));
	}
	return sum;
}

static struct mpi_bytes with_neighbors(enum mpi_moves moves, struct side *sent, struct side *got,
				       uint64_t comm)
{
	struct mpi_neighbors neighbors;
	struct mpi_bytes bytes = {0};

	if (!torsh_mpi_neighbors(comm, &neighbors)) {
		got->is_known = false;
		return bytes;
	}
	bytes.in = moves == MPI_ONE_TO_NEIGHBORS || moves == MPI_PART_TO_NEIGHBORS
			   ? one(sent)
			   : of_neighbors(sent, &neighbors, neighbors.n_out, moves);
	bytes.out = of_neighbors(got, &neighbors, neighbors.n_in, moves);
	return bytes;
}

struct mpi_bytes torsh_mpi_bytes(const struct mpi_arguments *arguments, const struct mpi_layout *at,
				 uint32_t rank, uint32_t size)
{
	struct side got = {arguments, at->count, at->type, true};
	struct side sent = {arguments, at->send_count, at->send_type, true};
	enum mpi_moves moves = (enum mpi_moves)at->moves;
	struct mpi_bytes bytes;

	if (moves >= MPI_ONE_TO_NEIGHBORS && moves <= MPI_TYPES_TO_NEIGHBORS)
		bytes = with_neighbors(moves, &sent, &got,
				       torsh_mpi_comm(arguments, at->comm, false));
	else if (at->peer)
		bytes = rooted(moves, &sent, &got, rank, size,
			       torsh_mpi_int(arguments, at->peer) == (int)rank);
	else
		bytes = unrooted(moves,
				 torsh_mpi_is_in_place(arguments, FIRST_BUFFER) ? NULL : &sent,
				 &got, rank, size);
	bytes.is_known = sent.is_known && got.is_known;
	return bytes;
}

struct mpi_bytes torsh_mpi_message_bytes(const struct mpi_arguments *arguments, uint8_t count,
					 uint8_t type)
{
	struct side side = {arguments, count, type, true};
	uint64_t n = one(&side);

	return (struct mpi_bytes){.is_known = side.is_known, .in = n, .out = n};
}
