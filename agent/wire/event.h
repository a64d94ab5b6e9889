/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Events as structs, which both sides handle, expanded from events.def. codec.h has their form on
 * the ring.
 */
#ifndef TORSH_AGENT_WIRE_EVENT_H
#define TORSH_AGENT_WIRE_EVENT_H

#include <stdint.h>

typedef uint32_t torsh_wire_u32;
typedef int32_t torsh_wire_i32;
typedef uint64_t torsh_wire_u64;
typedef uint32_t torsh_wire_label;
typedef uint64_t torsh_wire_moment;

enum event_id {
#define EVENT(id, NAME, name, text) EVENT_##NAME = id,
#define FIELD(type, name)
#define END(NAME)
#include "agent/wire/events.def"
#undef EVENT
#undef FIELD
#undef END
};

#define EVENT_ID_END 136 /* no id reaches this; tables by id have this many entries */

#define EVENT(id, NAME, name, text) struct event_##name {
#define FIELD(type, name) torsh_wire_##type name;
#define END(NAME) \
	}         \
	;
#include "agent/wire/events.def"
#undef EVENT
#undef FIELD
#undef END

/* The function that made a block: event_alloc.entry, 3 bits on the wire. */
enum alloc_entry {
	ALLOC_MALLOC,
	ALLOC_CALLOC,
	ALLOC_REALLOC,
	ALLOC_ALIGNED, /* posix_memalign, aligned_alloc, memalign, valloc, pvalloc */
	N_ALLOC_ENTRIES
};

/* Whether the event belongs to the timeline. */
#define EVENT_IS_TIMELINE(id) (((id) >= 32 && (id) < 56) || ((id) >= 64 && (id) < EVENT_ID_END))

/* What a thread waits for: thread_wait.kind. */
enum thread_wait_kind {
#define WAIT_KIND(NAME, name, text) THREAD_WAIT_##NAME,
#include "agent/wire/wait_kinds.def"
#undef WAIT_KIND
	N_THREAD_WAIT_KINDS
};

/* The API that reported a range, a mark or a value. */
/*
 * A bit of a MAP's flags that mmap never has: shmat made it, and descriptor is the segment's id.
 * An UNMAP of that length is shmdt: it ends what shmat made at the address.
 */
#define MAP_OF_SYSTEM_V 0x80000000u
#define UNMAP_OF_SYSTEM_V UINT64_MAX

enum range_source { RANGE_BY_TORSH, RANGE_BY_NVTX, RANGE_BY_ITT, RANGE_BY_MODULE };

#define OP_READS_MORE UINT64_MAX /* in place of an address */

/* What happened to a program's own pool or to a region in one: pool.what. */
enum pool_action {
	POOL_BEGINS,
	POOL_ENDS,
	POOL_RESETS, /* all its regions end */
	POOL_REGION,
	POOL_RESIZES, /* a region */
	POOL_REGION_ENDS,
	POOL_NAMES, /* a region */
	N_POOL_ACTIONS
};

enum range_payload { PAYLOAD_NONE, PAYLOAD_U64, PAYLOAD_I64, PAYLOAD_F64 };

enum value_kind { VALUE_SCALAR, VALUE_COUNTER, VALUE_SAMPLE /* of a histogram */ };

/* The scopes of RecordFunction that are used here: op_begin.scope. */
enum op_scope { OP_FUNCTION = 0, OP_BACKWARD = 1, OP_USER = 7 };

/* Who made a collective: collective.source. */
enum collective_source { COLLECTIVE_BY_C10D, COLLECTIVE_BY_MPI };

#define NUMBER_OF_MPI 0x80000000u /* collective.number and process_group.number: from here on */

/* process_group.is_world */
enum group_world { NO_WORLD, WORLD_OF_C10D, WORLD_OF_MPI };

/* collective.kind */
enum collective_kind {
	COLLECTIVE_OF_ALL,
	COLLECTIVE_SEND,
	COLLECTIVE_RECEIVE,
	/* Accesses to another rank's memory, which takes no part; their group is a window's. */
	COLLECTIVE_PUT,
	COLLECTIVE_GET,
	COLLECTIVE_UPDATE, /* both */
	COLLECTIVE_SYNC, /* waits for the ones before, or for the right to them */
	/* Of a file, whose group are the ranks that opened it: with a sequence of all of them. */
	COLLECTIVE_READ,
	COLLECTIVE_WRITE,
	N_COLLECTIVE_KINDS
};

#define COLLECTIVE_NO_SEQUENCE UINT64_MAX
#define COLLECTIVE_ANY_TAG UINT64_MAX /* collective.tag of a receive that takes any */

/* What NCCL's profiler interface reports: nccl_call.kind, nccl_work.kind, nccl_transfer.kind. */
enum nccl_kind {
	NCCL_COLLECTIVE, /* calls: as given to the device */
	NCCL_MESSAGE,
	NCCL_COLLECTIVE_API, /* as the program calls it; interfaces from 5 on */
	NCCL_MESSAGE_API,
	NCCL_CE_COLLECTIVE, /* by copy engines; interface 6 */
	NCCL_GROUP, /* works: the calls that run as one kernel */
	NCCL_GROUP_API, /* from the group's start to its end */
	NCCL_LAUNCH, /* of a kernel */
	NCCL_CE_SYNC,
	NCCL_CE_BATCH,
	NCCL_PROXY_OPERATION, /* transfers */
	NCCL_PROXY_STEP,
	NCCL_NETWORK, /* what a network's plugin reports */
	NCCL_KERNEL_CHANNEL, /* of nccl_kernel, which has no kind */
	N_NCCL_KINDS
};

/* The source of a schedule's steps, better ones later: schedule_step.told_by. */
enum step_source { STEP_BY_NOBODY, STEP_BY_OPTIMIZER, STEP_BY_PROFILER, STEP_BY_MARK };

/* How threads are sampled: cpu_sampler.source. */
enum cpu_source {
	CPU_SOURCE_NONE,
	CPU_SOURCE_TIMER, /* a timer of each thread's processor time, which sends it a signal */
	CPU_SOURCE_PERF, /* a clock of it by perf_event_open, in user space only, likewise */
};

/* The counters of a thread. */
enum cpu_counter {
#define HARDWARE(NAME, name, type, config) CPU_COUNTER_##NAME,
#define SOFTWARE(NAME, name) CPU_COUNTER_##NAME,
#include "agent/wire/cpu_counters.def"
#undef HARDWARE
#undef SOFTWARE
	N_CPU_COUNTERS
};

#define N_CPU_HARDWARE_COUNTERS CPU_COUNTER_TASK_CLOCK /* the first ones */
#define CPU_GROUP_COUNTERS 3u /* hardware counters of a group */
#define N_COUNTER_GROUPS (N_CPU_HARDWARE_COUNTERS / CPU_GROUP_COUNTERS)

/* How hardware counters are read: cpu_counter_mode.hardware. */
enum cpu_counter_way {
	CPU_COUNTERS_NONE,
	CPU_COUNTERS_BY_PAGE, /* from mapped pages, without a system call */
	CPU_COUNTERS_BY_READ, /* by a system call for each group */
};

/* cpu_sample.flags */
enum cpu_sample_flag {
	CPU_SAMPLE_HAS_STACK = 1,
	CPU_SAMPLE_IS_TIMED = 2, /* cpu_ns was measured; else it is the period */
};

/* task.kind */
enum task_kind {
	TASK_REQUEST, /* by torsh.request or torsh.h */
	TASK_HTTP, /* by recv and send */
	TASK_ASYNCIO,
	TASK_WORK_ITEM, /* of an executor of concurrent.futures */
	TASK_GREENLET,
	N_TASK_KINDS
};

/* task.flags */
enum task_flag {
	TASK_IS_SHARED = 1, /* its thread may have worked for others: only its times are known */
};

/* How device activities are recorded: device_mode.mode. */
enum device_mode {
	DEVICE_HOST_ONLY, /* only the host's calls */
	DEVICE_BY_EVENTS, /* times from pairs of the driver's events */
	DEVICE_BY_CUPTI, /* CUPTI's records of everything */
};

/* submission.what */
enum submission_what { SUBMISSION_KERNEL, SUBMISSION_COPY, SUBMISSION_MEMSET, SUBMISSION_GRAPH };

/* How counters of devices are read: counter_mode.mode. */
enum counter_mode {
	COUNTERS_OFF,
	COUNTERS_OF_OPERATORS, /* of single kernels, a few of each kind of launch */
	COUNTERS_OF_TIMELINE, /* of the device at equal intervals */
};

/* How values of several kernels are combined: counter_metric.aggregate. */
enum counter_aggregate { COUNTER_SUM, COUNTER_MEAN, COUNTER_MAX };

/* The sums of counter_loss. */
#define COUNTER_LOSSES   \
	LOSS(kernels)    \
	LOSS(collective) \
	LOSS(waiting)    \
	LOSS(capturing)  \
	LOSS(busy)       \
	LOSS(graphs)     \
	LOSS(failed)     \
	LOSS(samples)    \
	LOSS(lost)       \
	LOSS(clock_error_ns)

/* The fields of an event with a kernel's launch configuration. */
#define EVENT_SHAPE(grid, block)                                                              \
	.grid_x = (grid)[0], .grid_y = (grid)[1], .grid_z = (grid)[2], .block_x = (block)[0], \
	.block_y = (block)[1], .block_z = (block)[2]

#define COUNTER_VALUES 8u /* in one counter_range or counter_sample */
#define COUNTER_ALL_DEVICES UINT32_MAX

/* copy.kind; CUPTI's numbers. A is an array, D a device, H the host, P a peer. */
enum copy_kind {
	COPY_UNKNOWN,
	COPY_HTOD,
	COPY_DTOH,
	COPY_HTOA,
	COPY_ATOH,
	COPY_ATOA,
	COPY_ATOD,
	COPY_DTOA,
	COPY_DTOD,
	COPY_HTOH,
	COPY_PTOP,

	/* Not CUPTI's: what the driver's entry points report besides copies. */
	COPY_PREFETCH = 32, /* a request to move managed pages before they are used */
	COPY_DECOMPRESSION,
	N_COPY_KINDS
};

/* What memory is; CUPTI's numbers. */
enum device_memory {
	MEMORY_UNKNOWN,
	MEMORY_PAGEABLE,
	MEMORY_PINNED,
	MEMORY_DEVICE,
	MEMORY_ARRAY,
	MEMORY_MANAGED,
	MEMORY_DEVICE_STATIC,
	MEMORY_MANAGED_STATIC,
};

/* What a program can allocate from CUDA: device_alloc.kind. */
enum device_block_kind {
	BLOCK_NONE,
	BLOCK_DEVICE, /* cudaMalloc and its relatives, pools included */
	BLOCK_MANAGED,
	BLOCK_PINNED, /* host memory allocated by CUDA */
	BLOCK_REGISTERED, /* the program's own host memory, pinned in place */
	BLOCK_ARRAY,
	BLOCK_PHYSICAL, /* a handle of the virtual memory interface */
	BLOCK_MAPPING, /* addresses that map a part of a handle */
	BLOCK_CONTEXT, /* of a free: everything in the context */
	N_DEVICE_BLOCKS
};

enum device_block_flag {
	/* bytes is computed from the description: CUDA's layout overhead is unknown */
	BLOCK_IS_COMPUTED = 1,
	/* owned by another process or another interface: only the address is new */
	BLOCK_IS_IMPORTED = 2,
	BLOCK_IS_RETAINED = 4, /* another reference to an existing handle */
	BLOCK_IS_OF_HOST = 8, /* physical memory of the host */
	BLOCK_IS_UNSIZED = 16, /* its size is unknown */
};

#define DEVICE_NOT_KNOWN UINT32_MAX
/* Why the driver was queried for a device's memory. */
enum room_asked {
	ROOM_AT_END, /* by the agent */
	ROOM_BY_PROGRAM,
	/*
	 * by the agent: the program's memory reached a new maximum, a sixteenth or more above that
	 * of the last query
	 */
	ROOM_AT_HIGH,
};

#define ROOM_NOT_ASKED (-1) /* the agent may not call the driver there, or can't */

/* device_wait.kind; CUPTI's numbers. */
enum wait_kind {
	WAIT_UNKNOWN,
	WAIT_FOR_EVENT,
	WAIT_STREAM_FOR_EVENT,
	WAIT_FOR_STREAM,
	WAIT_FOR_CONTEXT,
	N_WAIT_KINDS
};

#define OP_NO_SEQUENCE UINT64_MAX

/* op_begin.flags */
#define OP_HAS_STACK 1u /* the thread's stack is the call's; otherwise it is an older one */
#define OP_INPUTS_CUT 2u /* more or larger inputs existed than were sent */

/* graph_executable.flags: frees what its last launch allocated; CUDA's number */
#define GRAPH_FREES_AT_LAUNCH 1u

/* launch.flags, graph_node.flags */
enum call_flag {
	/* the thread's stack is the call's; otherwise it is an older one */
	CALL_HAS_STACK = 1,
};

enum exit_how {
	EXIT_BY_EXIT,
	EXIT_BY_UNDERSCORE,
	EXIT_BY_QUICK,
	EXIT_BY_ABORT /* without a meaningful status */
};

/* Why a program can't be followed: event_program.problem. */
enum program_problem {
	PROGRAM_FINE,
	PROGRAM_STATIC, /* it has no loader that could load the agent */
	PROGRAM_PRIVILEGED, /* setuid, setgid or file capabilities: the loader drops the agent */
	PROGRAM_FOREIGN, /* of another architecture than the agent */
	/* its loader isn't that of the agent's C library: it can't load the agent, or crashes */
	PROGRAM_OTHER_LIBC,
	/* the agent's file doesn't exist there, as in another root directory */
	PROGRAM_WITHOUT_AGENT,
	/* its process forbade itself system calls: it was not inspected, and gets no agent */
	PROGRAM_UNDER_FILTER,
	/* a sanitizer's runtime ends a program in which another library comes before it */
	PROGRAM_SANITIZED,
	N_PROGRAM_PROBLEMS
};

/* One decoded event with its time. stamp is in channel units, absolute. */
struct event {
	uint32_t id; /* enum event_id */
	uint64_t stamp;
	union {
#define EVENT(id, NAME, name, text) struct event_##name name;
#define FIELD(type, name)
#define END(NAME)
#include "agent/wire/events.def"
#undef EVENT
#undef FIELD
#undef END
	};
};

#endif
