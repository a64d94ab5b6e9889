/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * MPI as far as the agent has to know it: where the arguments of its functions are, and what
 * handles and statuses are in the binary interfaces of Open MPI, of MPICH (Intel MPI, MVAPICH, Cray
 * MPICH) and of the MPI 5 standard. No header of MPI is needed: the library that is loaded tells
 * which one it is.
 *
 * A handle is a uint64_t here: Open MPI's and the standard's pointers, MPICH's 32-bit numbers.
 * Fortran's numbers become C handles. Arguments are the registers or stack slots of the call, so
 * that their upper half is undefined for an int.
 */
#ifndef TORSH_SHIM_MPI_MPI_H
#define TORSH_SHIM_MPI_MPI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a function does for the agent. */
enum mpi_role {
	MPI_INIT,
	MPI_FINALIZE,
	MPI_COLLECTIVE,
	MPI_SEND,
	MPI_RECEIVE,
	MPI_EXCHANGE, /* sends one message and receives another */
	MPI_TAKE, /* takes a message from the queue, which MPI_RECEIVE_TAKEN receives */
	MPI_RECEIVE_TAKEN,
	MPI_WAIT,
	MPI_TEST, /* the same without waiting */
	MPI_FORGET, /* the request ends unseen */
	MPI_CANCEL, /* the receive may end without a message */
	MPI_MAKE, /* makes a communicator, or what is made of one */
	MPI_FREE, /* frees one */
	MPI_PREPARE, /* makes a persistent request */
	MPI_START, /* starts persistent requests */
	MPI_ACCESS, /* to memory of another rank, or to a file */
	MPI_ACCESS_END, /* the second half of one */
};

/* What a function is about, if not a communicator. */
enum mpi_object { MPI_COMMUNICATOR, MPI_WINDOW, MPI_FILE };

/* What a rank of a collective gives and gets. Counts: an array with one for each rank. */
enum mpi_moves {
	MPI_NOTHING,
	MPI_SAME, /* gives count elements, gets as many */
	MPI_FROM_LOWER, /* the same, but rank 0 gets nothing */
	MPI_FROM_ROOT,
	MPI_TO_ROOT,
	MPI_ONE_TO_ALL, /* gives count elements, gets them from all */
	MPI_PART_TO_ALL, /* gives its own one of counts, gets all */
	MPI_ALL_TO_ALL, /* gives count elements to each, gets as many from each */
	MPI_PARTS_TO_ALL, /* gives send counts, gets counts */
	MPI_TYPES_TO_ALL, /* the same with arrays of types */
	MPI_GATHER, /* gives send count elements, the root gets count from each */
	MPI_GATHER_PARTS, /* the root gets counts */
	MPI_SCATTER, /* the root gives send count elements to each, each gets count */
	MPI_SCATTER_PARTS, /* the root gives send counts */
	MPI_ALL_TO_PART, /* gives all of counts, gets its own one */
	MPI_ALL_TO_ONE, /* gives count elements for each, gets count */
	/* Between neighbors in the communicator's topology, as the ones with all. */
	MPI_ONE_TO_NEIGHBORS,
	MPI_PART_TO_NEIGHBORS,
	MPI_NEIGHBORS,
	MPI_PARTS_TO_NEIGHBORS,
	MPI_TYPES_TO_NEIGHBORS,
	/* Of accesses. */
	MPI_PUT,
	MPI_GET,
	MPI_UPDATE, /* gives send count elements, gets count; without counts one each */
	MPI_READ,
	MPI_WRITE,
};

/* Positions of arguments, from 1; 0: the function has none. */
struct mpi_layout {
	uint8_t comm, tag, count, type;
	uint8_t peer; /* where the message goes to or comes from; the root of a collective */
	uint8_t send_count, send_type, send_peer, send_tag;
	uint8_t request, n_requests; /* n_requests 0: there is one */
	uint8_t status, n_done, indices, flag, message;
	uint8_t index; /* where the number of the complete request is stored */
	uint8_t made; /* where the new communicator is stored */
	uint8_t object; /* enum mpi_object: what is made, else what comm is */
	uint8_t what; /* enum mpi_role of what is prepared; 0: MPI_COLLECTIVE */
	bool is_all; /* an access that all ranks take part in */
	bool is_half; /* it is complete with MPI_ACCESS_END */
	bool has_statuses; /* an array, in the order of the requests or of the indices */
	bool is_part; /* of a communicator's processes */
	uint8_t moves; /* enum mpi_moves */
};

struct mpi_call {
	const char *name; /* "MPI_Allreduce" */
	uint8_t n_arguments; /* in C */
	uint8_t role; /* enum mpi_role */
	struct mpi_layout at;
};

enum mpi_call_number {
#define CALL(name, ...) MPI_CALL_##name,
#include "shim/mpi/mpi.def"
	N_MPI_CALLS
};

extern const struct mpi_call torsh_mpi_calls[N_MPI_CALLS];

/* How a function is called: in Fortran by reference, with the error as the last argument. */
enum mpi_form {
	MPI_IN_C,
	MPI_IN_C_LARGE, /* MPI_Allreduce_c: counts have 64 bits */
	MPI_IN_FORTRAN,
	MPI_IN_FORTRAN_2008,
	MPI_IN_FORTRAN_2008_TS, /* buffers are descriptors */
	N_MPI_FORMS
};

enum mpi_abi { MPI_ABI_UNKNOWN, MPI_ABI_OPEN_MPI, MPI_ABI_MPICH, MPI_ABI_STANDARD };

/* The form and the arguments of a call. */
struct mpi_arguments {
	enum mpi_form form;
	uint8_t n; /* in C */
	uintptr_t *at;
};

#define MPI_STATUS_BYTES_MAX 32u

/* Constants of the loaded library; complete when torsh_mpi_find has returned true. */
struct mpi_library {
	enum mpi_abi abi;
	const char *name; /* "openmpi", "mpich", "mpi_abi" */
	uint64_t world, self, comm_null, request_null, request_empty, message_null,
		message_no_process;
	int any_source, any_tag, no_process, root;
	uint32_t handle_bytes, status_bytes;
	uint8_t status_source, status_tag, status_count; /* places of these in a status */
	uintptr_t in_place, no_status, no_statuses;
	const void *fortran_in_place, *fortran_no_status, *fortran_no_statuses; /* NULL: none */
};

extern struct mpi_library torsh_mpi;

/*
 * Find the loaded library's constants and functions. Takes the loader's lock. Returns false while
 * none is loaded that is known; torsh_mpi.abi stays MPI_ABI_UNKNOWN.
 */
bool torsh_mpi_find(void);

/* ---- arguments ------------------------------------------------------------------------------- */

static inline bool torsh_mpi_is_fortran(enum mpi_form form)
{
	return form >= MPI_IN_FORTRAN;
}

/* Argument i, counted from 1, as it was passed. */
static inline uintptr_t torsh_mpi_argument(const struct mpi_arguments *arguments, uint8_t i)
{
	return arguments->at[i - 1];
}

/* An int: a rank, a tag, a number of requests. */
int torsh_mpi_int(const struct mpi_arguments *arguments, uint8_t i);

/* A count of elements. */
int64_t torsh_mpi_count(const struct mpi_arguments *arguments, uint8_t i);

/* The count of that rank in an array. */
int64_t torsh_mpi_count_of(const struct mpi_arguments *arguments, uint8_t i, uint32_t rank);

/* A communicator, also where one was stored by its address. */
uint64_t torsh_mpi_comm(const struct mpi_arguments *arguments, uint8_t i, bool is_stored);

/* The same of any object. 0: its handle can't be found. */
uint64_t torsh_mpi_object(const struct mpi_arguments *arguments, uint8_t i, bool is_stored,
			  enum mpi_object object);

/* Bytes of an element of the type in argument i. -1: unknown. */
int64_t torsh_mpi_type_bytes(const struct mpi_arguments *arguments, uint8_t i);

/* Of the type of that rank in the array in argument i. */
int64_t torsh_mpi_array_type_bytes(const struct mpi_arguments *arguments, uint8_t i, uint32_t rank);

/* A request in the array in argument i, 0: the null request. */
uint64_t torsh_mpi_request(const struct mpi_arguments *arguments, uint8_t i, uint32_t of);

/* Whether the library's handle of a request means that there is nothing to wait for. */
bool torsh_mpi_is_complete(uint64_t request);

/* The message that is stored in argument i; 0: none, or one from no process. */
uint64_t torsh_mpi_message(const struct mpi_arguments *arguments, uint8_t i);

/* Whether the program wants no status there. */
bool torsh_mpi_ignores_status(const struct mpi_arguments *arguments, const struct mpi_layout *at);

/* Whether argument i, a buffer, says that the data are in the other buffer. */
bool torsh_mpi_is_in_place(const struct mpi_arguments *arguments, uint8_t i);

/* Whether the flag at the address in argument i is true. */
bool torsh_mpi_is_set(const struct mpi_arguments *arguments, uint8_t i);

/* Returns 0 for success: from the result in C, in Fortran from the last argument. */
int torsh_mpi_error(const struct mpi_arguments *arguments, uintptr_t result);

/* ---- statuses -------------------------------------------------------------------------------- */

struct mpi_received {
	int source, tag;
	bool has_bytes;
	uint64_t bytes;
};

/* What the status at this address says. */
struct mpi_received torsh_mpi_status(const void *status);

/* ---- functions of the library, which do not communicate -------------------------------------- */

/* Whether MPI is initialised and not finalised. */
bool torsh_mpi_is_up(void);

/* The calling process's rank in the communicator, and its size. False for an intercommunicator. */
bool torsh_mpi_describe(uint64_t comm, uint32_t *rank, uint32_t *size);

/*
 * Ranks in MPI_COMM_WORLD of the communicator's ranks from first on, at most n of them. Returns how
 * many are stored; -1 stands for a process that isn't in it.
 */
uint32_t torsh_mpi_world_ranks(uint64_t comm, uint32_t first, uint32_t n, int *ranks);

#define MPI_NEIGHBORS_KNOWN 64u

/*
 * The ranks from which this one gets, and to which it gives, in the topology of a communicator.
 * Bits: those beyond the edge of a grid that is no ring, which aren't there.
 */
struct mpi_neighbors {
	uint32_t n_in, n_out;
	uint64_t missing;
};

/* Defined in shim/mpi/mpi_topology.c. Find the library's functions; torsh_mpi_find does it. */
void torsh_mpi_topology_find(const struct mpi_library *library);

/* False: it has no topology, or one that isn't known. */
bool torsh_mpi_neighbors(uint64_t comm, struct mpi_neighbors *neighbors);

/* ---- wrappers -------------------------------------------------------------------------------- */

/*
 * Defined in shim/mpi/mpi_objects.c. From now on interpose MPI's functions in all loaded objects,
 * and in those that will be opened. Called once, while the program has no other threads.
 */
void torsh_mpi_objects_start(void);

extern bool torsh_mpi_objects_on;

/* Interpose the functions in objects that were opened since. Takes the loader's lock. */
void torsh_mpi_objects_recheck(void);

/* Whether the name is of an interposed function, in a process with a known MPI library. */
bool torsh_mpi_has(const char *name);

/*
 * The result of a look-up of that name which found this address: the wrapper, or found itself. For
 * other names it does nothing.
 */
void *torsh_mpi_instead(const char *name, void *found);

/*
 * Defined in shim/mpi/mpi_names.c. The number of the function with this name, whose form is stored;
 * -1 if it isn't recorded.
 */
int torsh_mpi_number(const char *name, enum mpi_form *form);

/*
 * Defined in shim/mpi/mpi_wrappers.c. The wrapper of a function, and where it keeps the next
 * definition: NULL until the caller stores one, which has to come before the first call.
 */
void *torsh_mpi_wrapper(int number, enum mpi_form form, void *_Atomic **next);

#endif
