/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * NCCL's functions, for a library that has no interface for profilers (before 2.23) or has not
 * loaded the agent by it. Arguments are those of nccl.h, which is not needed.
 */
#ifndef TORSH_SHIM_NCCL_NCCL_API_H
#define TORSH_SHIM_NCCL_NCCL_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
	char internal[128];
} nccl_unique_id;

/* Results: ncclSuccess and ncclInProgress. Others are errors. */
enum { NCCL_SUCCESS = 0, NCCL_IN_PROGRESS = 7 };

/* ---- Objects: shim/nccl/nccl_objects.c ------------------------------------------------------- */

/*
 * From now on interpose NCCL's functions in all loaded objects, and in those that will be opened.
 * Called once, while the program has no other threads.
 */
void torsh_nccl_objects_start(void);

extern bool torsh_nccl_objects_on;

/* Interpose the functions in objects that were opened since. Takes the loader's lock. */
void torsh_nccl_objects_recheck(void);

/* Whether the name is of an interposed function. */
bool torsh_nccl_api_has(const char *name);

/* The result of a look-up of such a name which found this address: the wrapper, or found itself. */
void *torsh_nccl_api_instead(const char *name, void *found);

/* ---- The library: shim/nccl/nccl_library.c --------------------------------------------------- */

/* Find its functions that the agent calls. Takes the loader's lock. False: it has none. */
bool torsh_nccl_library_find(void);
bool torsh_nccl_library_is_found(void);

/* The calling process's rank in the communicator, and its size. False: NCCL returns an error. */
bool torsh_nccl_api_describe(const void *comm, int *rank, int *n_ranks);

/* The library with this code has got a table of the agent's: it reports what it does. */
void torsh_nccl_add_reporter(const void *code);

/* Whether the library reports its calls to the agent itself. */
bool torsh_nccl_api_is_reported(void);

/* ---- Wrappers: shim/nccl/nccl_wrappers.c ----------------------------------------------------- */

enum nccl_api {
#define CALL(name) NCCL_API_##name,
#include "shim/nccl/nccl_api.def"
	N_NCCL_API
};

/* The name of a function, its wrapper, and where it keeps the next definition; NULL at first. */
struct nccl_api_function {
	const char *name;
	void *wrapper;
	void *_Atomic next;
};

extern struct nccl_api_function torsh_nccl_api[N_NCCL_API];

/* ---- What is reported to collectors/nccl/nccl_api_events.c; all keep errno ------------------- */

/* What moves data. */
enum nccl_function {
	NCCL_FUNCTION_AllReduce,
	NCCL_FUNCTION_Broadcast,
	NCCL_FUNCTION_Reduce,
	NCCL_FUNCTION_AllGather,
	NCCL_FUNCTION_ReduceScatter,
	NCCL_FUNCTION_AlltoAll,
	NCCL_FUNCTION_Gather,
	NCCL_FUNCTION_Scatter,
	N_NCCL_COLLECTIVES,
	NCCL_FUNCTION_Send = N_NCCL_COLLECTIVES,
	NCCL_FUNCTION_Recv,
	N_NCCL_FUNCTIONS
};

/* A call: root is 0 where there is none, peer counts for messages only. */
struct nccl_api_call {
	enum nccl_function function;
	uint8_t datatype;
	int root, peer;
	size_t count;
	const void *comm;
	void *stream;
};

/* It is about to be called. Returns a handle for its end; 0: it is not recorded. */
uint64_t torsh_nccl_call_begins(const struct nccl_api_call *call);
void torsh_nccl_call_ends(uint64_t handle);

/* A group began; it ended, which has launched its calls. */
void torsh_nccl_group_began(void);
void torsh_nccl_group_ended(bool has_failed);

/*
 * Communicators are or will be stored there, in a group at its end: those of this identity, n from
 * a single process; id NULL: of no other process.
 */
void torsh_nccl_comms_made(void *const *comms, uint32_t n, const nccl_unique_id *id);

/* A part of a communicator with this color is, or will be, stored there. */
void torsh_nccl_comm_split(const void *parent, int color, void *const *made);

/* It is about to be destroyed. */
void torsh_nccl_comm_ends(const void *comm);

#endif
