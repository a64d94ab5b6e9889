/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The ABI of NCCL's profiler plugins, interfaces 1 to 6, declared here because NCCL installs no
 * header for it: src/include/plugin/profiler of its public source, the same in all versions that
 * have an interface (from NCCL 2.23 on). test/unit/shim/nccl_test.c has the offsets.
 */
#ifndef TORSH_SHIM_NCCL_NCCL_H
#define TORSH_SHIM_NCCL_NCCL_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NCCL_VERSIONS 6u /* interfaces are numbered from 1 */
#define NCCL_BY_CALLS 0u /* no interface: calls of NCCL's functions, shim/nccl/nccl_api.h */

/* Types of events: bits of an activation mask. Interfaces before 5 report the first 6 to 8. */
enum nccl_type {
	NCCL_TYPE_GROUP = 1 << 0, /* a plan of calls that run as one kernel */
	NCCL_TYPE_COLLECTIVE = 1 << 1,
	NCCL_TYPE_MESSAGE = 1 << 2,
	NCCL_TYPE_PROXY_OPERATION = 1 << 3,
	NCCL_TYPE_PROXY_STEP = 1 << 4,
	NCCL_TYPE_PROXY_CONTROL = 1 << 5,
	NCCL_TYPE_KERNEL_CHANNEL = 1 << 6,
	NCCL_TYPE_NETWORK = 1 << 7,
	NCCL_TYPE_GROUP_API = 1 << 8,
	NCCL_TYPE_COLLECTIVE_API = 1 << 9,
	NCCL_TYPE_MESSAGE_API = 1 << 10,
	NCCL_TYPE_LAUNCH = 1 << 11,
	NCCL_TYPE_CE_COLLECTIVE = 1 << 12, /* by copy engines, without a kernel */
	NCCL_TYPE_CE_SYNC = 1 << 13,
	NCCL_TYPE_CE_BATCH = 1 << 14,
};

/* What an event descriptor begins with. type is 8 bits wide before interface 5. */
struct nccl_descriptor {
	union {
		uint8_t narrow;
		uint64_t wide;
	} type;
	void *parent;
	int rank;
	union {
		struct {
			const char *function; /* NCCL's word for it */
			void *stream;
			uint64_t sequence; /* COLLECTIVE_NO_SEQUENCE: of a message */
			size_t count;
			int root, peer;
			uint8_t datatype;
		} call; /* of NCCL_BY_CALLS */
		struct {
			const char *communicator_name;
			uint64_t communicator_hash, sequence;
			uint8_t function;
			const void *from;
			void *to;
			size_t count;
			int root;
			uint8_t datatype;
			uint32_t reduction;
			size_t traffic_bytes;
			uint8_t channels, warps, algorithm, protocol;
			int is_collnet, is_nvls;
		} collective_1;
		struct {
			const char *communicator_name;
			uint64_t communicator_hash, sequence;
			const char *function;
			const void *from;
			void *to;
			size_t count;
			int root;
			const char *datatype;
			size_t traffic_bytes;
			uint8_t channels, warps;
			const char *algorithm, *protocol;
		} collective_2;
		struct {
			const char *communicator_name;
			uint64_t communicator_hash, sequence;
			const char *function;
			const void *from;
			void *to;
			size_t count;
			int root;
			const char *datatype;
			uint8_t channels, warps;
			const char *algorithm, *protocol;
		} collective_3;
		struct {
			uint64_t sequence;
			const char *function;
			const void *from;
			void *to;
			size_t count;
			int root;
			const char *datatype;
			uint8_t channels, warps;
			const char *algorithm, *protocol;
			void *group; /* from interface 5 on */
		} collective_4;
		struct {
			const char *communicator_name;
			uint64_t communicator_hash;
			uint8_t function;
			void *buffer;
			uint8_t datatype;
			size_t count;
			int peer;
		} message_1;
		struct {
			const char *communicator_name;
			uint64_t communicator_hash;
			const char *function;
			void *buffer;
			const char *datatype;
			size_t count;
			int peer;
		} message_2; /* and 3 */
		struct {
			const char *function;
			void *buffer;
			const char *datatype;
			size_t count;
			int peer;
			uint8_t channels;
			void *group; /* from interface 5 on */
		} message_4;
		struct {
			int process; /* a pid_t */
			uint8_t channel;
			int peer, steps, chunk_bytes, is_send;
		} proxy_operation;
		struct {
			int step;
		} proxy_step;
		struct {
			uint8_t channel;
			uint64_t device_ns; /* from interface 4 on */
		} kernel_channel;
		struct {
			int64_t id; /* enum nccl_network, and a version in the low 16 bits */
			void *data;
		} network;
		struct {
			bool is_captured;
			int depth;
		} group_api;
		struct {
			const char *function;
			size_t count;
			const char *datatype;
			int root;
			void *stream;
			bool is_captured;
		} collective_api;
		struct {
			const char *function;
			size_t count;
			const char *datatype;
			void *stream;
			bool is_captured;
		} message_api;
		struct {
			void *stream;
		} launch;
		struct {
			uint64_t sequence;
			const char *function;
			const void *from;
			void *to;
			size_t count;
			int root;
			const char *datatype, *strategy;
			bool is_synchronised_within;
			uint32_t batch_size, batches, number;
			void *stream;
		} ce_collective;
		struct {
			bool is_complete;
			int ranks;
		} ce_sync;
		struct {
			int operations;
			size_t bytes;
			bool is_synchronised_within;
		} ce_batch;
	};
};

enum nccl_network { NCCL_NETWORK_IB = 1 << 16, NCCL_NETWORK_SOCKET = 2 << 16 };

/* What network.data points to with version 1 of the two. */
struct nccl_network_ib {
	uint8_t type;
	alignas(8) int device;
	uint64_t request;
	int opcode, queue;
	size_t bytes;
};

struct nccl_network_socket {
	uint8_t type;
	alignas(8) int descriptor;
	int operation;
	size_t bytes;
};

/* States with arguments; others have none. Numbers as of all interfaces. */
enum nccl_state_number {
	NCCL_STATE_OPERATION_FIRST = 0, /* of a proxy's operation, before interface 4 */
	NCCL_STATE_OPERATION_LAST = 7,
	NCCL_STATE_STEP_FIRST = 8, /* of a proxy's step: bytes from interface 4 on */
	NCCL_STATE_STEP_LAST = 12,
	NCCL_STATE_PEER_WAIT = 20, /* of a step, too */
	NCCL_STATE_NETWORK_UPDATE = 21,
	NCCL_STATE_KERNEL_STOP = 22,
};

union nccl_state_arguments {
	struct {
		size_t bytes;
		int steps;
	} operation; /* before interface 4 */
	struct {
		size_t bytes;
	} step; /* from interface 4 on */
	struct {
		uint64_t device_ns;
	} kernel_channel;
};

/* A plugin: a table of that name for each interface. Results: 0 is success. */
struct nccl_plugin {
	const char *name;
	union {
		int (*of_1)(void **context, int *mask); /* to 3 */
		int (*of_4)(void **context, int *mask, const char *name, uint64_t hash, int n_nodes,
			    int n_ranks, int rank, void *log);
		int (*of_5)(void **context, uint64_t hash, int *mask, const char *name, int n_nodes,
			    int n_ranks, int rank, void *log); /* and 6 */
	} init;
	int (*start)(void *context, void **handle, struct nccl_descriptor *descriptor);
	int (*stop)(void *handle);
	int (*state)(void *handle, int state, union nccl_state_arguments *arguments);
	int (*finalize)(void *context);
};

/* What a communicator is made with. Interfaces before 4 say nothing about it: all is 0. */
struct nccl_start {
	uint32_t version; /* of the interface */
	const char *name; /* NULL: it has none */
	uint64_t hash;
	int n_nodes, n_ranks, rank;
};

static inline uint32_t nccl_type_of(uint32_t version, const struct nccl_descriptor *descriptor)
{
	bool is_narrow = version != NCCL_BY_CALLS && version < 5;

	return is_narrow ? descriptor->type.narrow : (uint32_t)descriptor->type.wide;
}

/* Whether the name is that of a table of plugins. */
bool torsh_nccl_has(const char *name);

/*
 * What a look-up of such a name in handle, by code at caller, returns instead of what it found: the
 * agent's table, which calls through to the plugin's, or what would be found without the agent.
 */
void *torsh_nccl_instead(const char *name, void *handle, void *found, const void *caller);

/*
 * The other plugin (shim/nccl/nccl_chain.c): it gets the calls that it would get alone, with its
 * own handles, contexts and event mask.
 */

/* Call through to this table from now on; NULL: there is none. */
void torsh_nccl_chain(uint32_t version, const struct nccl_plugin *plugin);

/*
 * Initialize the other plugin for a communicator with this context in the agent, and set *mask to
 * what it and the agent (own) want. If the plugin fails, it gets nothing of the communicator.
 */
void torsh_nccl_chain_init(const struct nccl_start *start, uint64_t context, int *mask, int own,
			   void *log);

/*
 * Pass on the begin of an event. *handle is the agent's handle of it, and becomes another one if
 * the plugin has one of its own. Returns the plugin's result.
 */
int torsh_nccl_chain_start(uint32_t version, uint64_t context, uint64_t *handle,
			   struct nccl_descriptor *descriptor);

/* Pass on its end, a state, and the end of the communicator. Return the plugin's result. */
int torsh_nccl_chain_stop(uint32_t version, uint64_t handle);
int torsh_nccl_chain_state(uint32_t version, uint64_t handle, int state,
			   union nccl_state_arguments *arguments);
int torsh_nccl_chain_finalize(uint32_t version, uint64_t context);

/*
 * What is reported to the collector, collectors/nccl/nccl_events.c. Contexts and handles are
 * numbers, so that they stay valid in NCCL's hands as long as it has them, also in another process.
 */
enum nccl_handle {
	NCCL_HANDLE_RECORDED = 1 << 0, /* its begin was sent */
	NCCL_HANDLE_FOREIGN = 1 << 1, /* done for another process */
	NCCL_HANDLE_BITS = 2, /* the event's number is above */
};

/* The types of events that are to be recorded; 0: none, the plugin is not to be used. */
int torsh_nccl_mask(void);

/* A communicator was made. Returns its context, never 0. */
uint64_t torsh_nccl_made(const struct nccl_start *start);

/* An event began. Returns its handle; 0: it is not recorded, and nobody else needs one. */
uint64_t torsh_nccl_begins(uint32_t version, uint64_t context,
			   const struct nccl_descriptor *descriptor);

/* Whether the event is an operation that this process's proxy does for another process. */
bool torsh_nccl_is_elsewhere(uint32_t version, const struct nccl_descriptor *descriptor);

/* A handle for an event that is not recorded. */
uint64_t torsh_nccl_unrecorded(void);

/* The event entered a state; arguments may be NULL. */
void torsh_nccl_enters(uint32_t version, uint64_t handle, int state,
		       const union nccl_state_arguments *arguments);

/* The event ended; the communicator did. */
void torsh_nccl_ends(uint64_t handle);
void torsh_nccl_finalized(uint64_t context);

/* Add a sentence to the notes of the recording. */
void torsh_nccl_note(const char *sentence);

#endif
