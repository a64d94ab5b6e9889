/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The ABI of CUPTI: cupti_activity.h and cupti_callbacks.h, declared here so that the agent is
 * built without them. test/unit/shim/cupti_test.c compares with the real headers where they are
 * installed. Records grow with each version and keep their beginning: the declared part is common
 * to all versions from CUDA 12.0 on (CUPTI_VERSION_MIN).
 */
#ifndef TORSH_SHIM_CUDA_CUPTI_H
#define TORSH_SHIM_CUDA_CUPTI_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CUPTI_VERSION_MIN 18u /* CUPTI_API_VERSION of CUDA 12.0 */

enum cupti_result {
	CUPTI_DONE = 0,
	CUPTI_INVALID_PARAMETER = 1,
	CUPTI_END_OF_BUFFER = 12, /* CUPTI_ERROR_MAX_LIMIT_REACHED */
	CUPTI_SUBSCRIBER_TAKEN = 39, /* CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED */

	/* Why there are no counters; named after CUPTI_ERROR_ or the comment. */
	CUPTI_OUT_OF_MEMORY = 8,
	CUPTI_HARDWARE_BUSY = 26,
	CUPTI_NOT_SUPPORTED = 27,
	CUPTI_VIRTUALIZED = 33, /* VIRTUALIZED_DEVICE_NOT_SUPPORTED */
	CUPTI_INSUFFICIENT_PRIVILEGES = 35,
	CUPTI_OLD_PROFILER = 36, /* OLD_PROFILER_API_INITIALIZED */
	CUPTI_VIRTUALIZED_PRIVILEGES = 40, /* VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES */
	CUPTI_CONFIDENTIAL = 41, /* CONFIDENTIAL_COMPUTING_NOT_SUPPORTED */
	CUPTI_MIG = 43, /* MIG_DEVICE_NOT_SUPPORTED */
	CUPTI_WSL = 45, /* WSL_DEVICE_NOT_SUPPORTED */
	CUPTI_UNKNOWN_CHIP = 46, /* INVALID_CHIP_NAME */
};

enum cupti_kind {
	CUPTI_KIND_COPY = 1, /* CUPTI_ACTIVITY_KIND_MEMCPY */
	CUPTI_KIND_MEMSET = 2,
	CUPTI_KIND_DEVICE = 8,
	CUPTI_KIND_CONTEXT = 9,
	CUPTI_KIND_KERNEL = 10, /* CONCURRENT_KERNEL; KERNEL lets no two run at once */
	CUPTI_KIND_OVERHEAD = 17,
	CUPTI_KIND_PEER_COPY = 22, /* MEMCPY2 */
	CUPTI_KIND_STREAM = 37,
	CUPTI_KIND_WAIT = 38, /* SYNCHRONIZATION */
};

/* Callback domains: calls, and the creation and destruction of resources. */
enum cupti_domain {
	CUPTI_DOMAIN_DRIVER = 1,
	CUPTI_DOMAIN_RUNTIME = 2,
	CUPTI_N_API_DOMAINS = 3,
	CUPTI_DOMAIN_RESOURCE = 3,
};

enum cupti_resource_id { CUPTI_CONTEXT_ENDS = 2, CUPTI_NODE_CREATED = 13, CUPTI_NODE_CLONED = 20 };

#define CUPTI_CALLS_MAX 2048u /* callback ids of a domain; there are some 850 */

enum cupti_site { CUPTI_ENTER, CUPTI_EXIT };

#define CUPTI_FLUSH_FORCED 1u /* includes records of unfinished activities, without their ends */
#define CUPTI_ALIGNMENT 8u

/* CUpti_Activity: the start of all records. */
struct cupti_record {
	int kind;
};

/* CUpti_ActivityKernel7 to 11. The name is CUPTI's, or the module's. */
struct __attribute__((packed, aligned(8))) cupti_kernel {
	int kind;
	uint8_t cache_config;
	uint8_t shared_config;
	uint16_t registers;
	int partitioned_cache[2];
	uint64_t start, end, completed;
	uint32_t device, context, stream;
	uint32_t grid[3], block[3];
	uint32_t static_shared_bytes, dynamic_shared_bytes;
	uint32_t local_bytes_a_thread, local_bytes;
	uint32_t correlation;
	int64_t grid_id;
	const char *name;
	void *reserved;
	uint64_t queued, submitted;
	uint8_t launch_type, is_shared_carveout_requested, shared_carveout, padding;
	uint32_t shared_executed;
	uint64_t node;
	uint32_t shared_limit_config;
	uint32_t graph;
};

/* CUpti_ActivityMemcpy5 and 6. */
struct __attribute__((packed, aligned(8))) cupti_copy {
	int kind;
	uint8_t copy_kind, from, to, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation, runtime_correlation, padding;
	void *reserved;
	uint64_t node;
	uint32_t graph;
};

/* CUpti_ActivityMemcpyPtoP4. */
struct __attribute__((packed, aligned(8))) cupti_peer_copy {
	int kind;
	uint8_t copy_kind, from, to, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream;
	uint32_t from_device, from_context, to_device, to_context, correlation;
	void *reserved;
	uint64_t node;
	uint32_t graph;
};

/* CUpti_ActivityMemset4. */
struct __attribute__((packed, aligned(8))) cupti_memset {
	int kind;
	uint32_t value;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation;
	uint16_t flags, memory;
	uint32_t padding;
	void *reserved;
	uint64_t node;
	uint32_t graph;
};

#define CUPTI_FLAG_ASYNC 1u /* of copies and memsets */

/* CUpti_ActivityDevice4 to 6. CUPTI owns the name. */
struct __attribute__((packed, aligned(8))) cupti_device {
	int kind;
	uint32_t flags;
	uint64_t bandwidth_kb; /* kB/s */
	uint64_t memory_bytes;
	uint32_t constant_bytes, l2_bytes, warp_threads, clock_khz, n_copy_engines, multiprocessors,
		ipc_most;
	uint32_t multiprocessor_warps, multiprocessor_blocks, multiprocessor_shared_bytes,
		multiprocessor_registers;
	uint32_t block_registers, block_shared_bytes, block_threads;
	uint32_t block_most[3], grid_most[3];
	uint32_t capability_major, capability_minor;
	uint32_t device, has_ecc;
	uint8_t uuid[16];
	const char *name;
};

/* CUpti_ActivityContext to 4. */
struct __attribute__((packed, aligned(8))) cupti_context {
	int kind;
	uint32_t context, device;
	uint16_t api;
	uint16_t null_stream;
};

/* CUpti_ActivityStream. */
struct __attribute__((packed, aligned(8))) cupti_stream {
	int kind;
	uint32_t context, stream, priority, flag, correlation;
};

/* CUpti_ActivitySynchronization and 2. */
struct __attribute__((packed, aligned(8))) cupti_wait {
	int kind;
	int wait; /* enum wait_kind */
	uint64_t start, end;
	uint32_t correlation, context, stream, event;
};

/* CUpti_ActivityOverhead to 3. */
struct __attribute__((packed, aligned(8))) cupti_overhead {
	int kind;
	int overhead;
	int object; /* the kind of object_id */
	uint32_t object_id[3];
	uint64_t start, end;
};

/* CUpti_CallbackData: a call of the runtime or of the driver. */
struct cupti_call {
	int site; /* enum cupti_site */
	const char *function;
	const void *parameters;
	const void *result; /* at the exit */
	const char *symbol;
	void *context;
	uint32_t context_id;
	uint64_t *slot; /* shared by the enter and the exit of a call */
	uint32_t correlation;
};

/* CUpti_ResourceData: a resource was created or is about to be destroyed. */
struct cupti_resource {
	void *context;
	void *handle;
	void *descriptor; /* for graphs: struct cupti_graph */
};

/* CUpti_GraphData. */
struct cupti_graph {
	void *graph, *original_graph;
	void *node, *original_node; /* original_node: of a clone */
	int node_type; /* a CUgraphNodeType */
};

/* The first parameters of cuLaunchKernel and cuLaunchCooperativeKernel. */
struct cupti_launch {
	void *function;
	uint32_t grid[3], block[3];
	uint32_t shared_bytes;
};

/* The start of CUlaunchConfig; cuLaunchKernelEx takes a pointer to it. */
struct cupti_launch_config {
	uint32_t grid[3], block[3];
	uint32_t shared_bytes;
};

/* CUpti_SubscriberParams of 13.0; later ones have more. */
struct cupti_subscriber_parameters {
	size_t n_bytes;
	const char *name;
	char *old_name;
	size_t old_name_bytes;
};

#define CUPTI_OLD_NAME_BYTES 64u /* CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN */

typedef void cupti_callback(void *data, int domain, uint32_t id, const void *call);
typedef uint64_t cupti_clock(void);
typedef void cupti_request(uint8_t **buffer, size_t *n_bytes, size_t *n_records);
typedef void cupti_complete(void *context, uint32_t stream, uint8_t *buffer, size_t n_bytes,
			    size_t n_valid);

/* The functions without their prefix "cupti"; filled by torsh_cupti_open. */
struct cupti_functions {
#define CUPTI(Name, parameters) int(*Name) parameters;
#define CUPTI_OPTIONAL(Name, parameters) int(*Name) parameters;
#include "shim/cuda/cupti.def"
#undef CUPTI
#undef CUPTI_OPTIONAL
};

extern struct cupti_functions torsh_cupti;
extern void *torsh_cupti_library; /* the library that has them, a handle of dlopen */

/*
 * Calls of CUPTI by another client in this process: activities in collectors/cuda/cupti/cuda_tee.c,
 * subscriptions in collectors/cuda/cupti/cuda_shadow.c. Each function has the parameters of CUPTI's
 * and returns its CUptiResult, or -1 if the call must be passed on to CUPTI.
 */

/* The client's buffers receive copies of the records; CUPTI has the agent's callbacks. */
int torsh_cuda_tee_ActivityRegisterCallbacks(cupti_request *request, cupti_complete *complete);

/* CUPTI reads this clock for all records from now on. */
int torsh_cuda_tee_ActivityRegisterTimestampCallback(cupti_clock *clock);

/* The client receives records of this kind. */
int torsh_cuda_tee_ActivityEnable(int kind);

/* The client no longer receives records of this kind; the agent may still need them. */
int torsh_cuda_tee_ActivityDisable(int kind);

/* Fetch records from CUPTI, and deliver the client's. */
int torsh_cuda_tee_ActivityFlushAll(uint32_t flags);

/* Flush the client's records; CUPTI stays attached for the agent. */
int torsh_cuda_tee_Finalize(void);

/* CUPTI has one subscriber, which is the agent: the client becomes a shadow of it. */
int torsh_cuda_tee_Subscribe(void **subscriber, cupti_callback *call, void *data);

/* Likewise with CUPTI 13's parameters. */
int torsh_cuda_tee_Subscribe_v2(void **subscriber, cupti_callback *call, void *data,
				struct cupti_subscriber_parameters *parameters);

/* End the client's shadow subscription. */
int torsh_cuda_tee_Unsubscribe(void *subscriber);

/* Enable or disable one callback of the client. */
int torsh_cuda_tee_EnableCallback(uint32_t enable, void *subscriber, int domain, uint32_t id);

/* Enable or disable all callbacks of a domain for the client. */
int torsh_cuda_tee_EnableDomain(uint32_t enable, void *subscriber, int domain);

/* Enable or disable all callbacks for the client. */
int torsh_cuda_tee_EnableAllDomains(uint32_t enable, void *subscriber);

/* Get whether a callback is enabled for the client. */
int torsh_cuda_tee_GetCallbackState(uint32_t *is_on, void *subscriber, int domain, uint32_t id);

/*
 * Like torsh_driver_has and torsh_driver_instead, for the functions of CUPTI that the agent
 * interposes.
 */
bool torsh_cupti_has(const char *name);

/* Whether the agent interposes a function of this name without a next definition. */
bool torsh_cupti_lacks(const char *name);

/* The result of a lookup of name that found this address: the agent's function if interposed. */
void *torsh_cupti_instead(const char *name, void *found);

/*
 * Find libcupti: the copy that is already loaded, else one next to the loaded libcudart, else by
 * the loader's search path; first the version of that libcudart, then the newest. Opens it, which
 * runs its constructors. Returns 0, -ENOENT, or -ENOSYS if it lacks a function.
 */
int torsh_cupti_open(void);

/*
 * Load the library of this name from the folder of the one that holds address. Returns its handle,
 * or NULL if it is not there.
 */
void *torsh_cupti_open_beside(const void *address, const char *name);

#endif
