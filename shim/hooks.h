/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the exported functions report to the collectors: declared here, by the caller, and defined
 * in collectors/, so that the shim contains nothing about recording. frame is the exported
 * function's __builtin_frame_address(0); stacks start above it. All keep errno and never fail
 * towards the caller.
 */
#ifndef TORSH_SHIM_HOOKS_H
#define TORSH_SHIM_HOOKS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/wire/event.h"

#define EXPORT __attribute__((visibility("default")))
#define HOOK_FRAME __builtin_frame_address(0)
#define HOOK_CALLER __builtin_return_address(0)

/*
 * Heap: collectors/heap/heap_events.c.
 *
 * A block was allocated; size is as requested, block may be NULL: the call failed.
 */
void torsh_heap_allocated(void *block, size_t size, enum alloc_entry entry, const void *frame);
/*
 * Like torsh_heap_allocated, for a hook after torsh_pause_is_own_at_call and the real call.
 */
void torsh_heap_allocated_unpaused(void *block, size_t size, enum alloc_entry entry,
				   const void *frame);
/*
 * Like torsh_heap_allocated, for another allocator than malloc's: it has no usable size to query.
 */
void torsh_heap_allocated_elsewhere(void *block, size_t size, enum alloc_entry entry,
				    const void *frame);
/*
 * Between the two calls, the calling thread's allocations belong to an allocator and are not
 * recorded. leave takes the result of enter.
 */
void *torsh_heap_enter_allocator(void);

/* Ends what torsh_heap_enter_allocator began; takes its result. */
void torsh_heap_leave_allocator(void *outer);

/*
 * The block is about to be freed; called before the real free, as its address may be reused at
 * once.
 */
void torsh_heap_freeing(void *block);

/* A resize begins, which is recorded as a free. */
void torsh_heap_resizing(void *block);

/* The resize failed: the block is live again. */
void torsh_heap_not_resized(void *block);
/* The program declares a block to be no leak (LeakSanitizer's interface). */
void torsh_heap_ignored(void *block);

enum { HEAP_OPERATORS_RECORD = 1, HEAP_LSAN_DISABLES = 2 };

/*
 * Rare features, as bits of one word that hooks check. Hidden, so that a hook reads it without the
 * global offset table.
 */
extern int torsh_heap_exceptions __attribute__((visibility("hidden")));

/* LeakSanitizer's interface: a block was allocated and recorded (shim/allocators/lsan.c). */
void torsh_lsan_allocated(void *block);

/*
 * Address space: collectors/heap/mapping_events.c. unmap, remap, break and move_break make the
 * system call themselves, so that their stamp is taken before it, and set errno as it does. frame:
 * the hook's __builtin_frame_address(0), for the stack.
 */

/* mmap has succeeded with these arguments, at this address. */
void torsh_vm_mapped(void *at, size_t n_bytes, int prot, int flags, int fd, off_t offset,
		     const void *frame);

/* Call and record munmap. Returns its result. */
int torsh_vm_unmap(void *at, size_t n_bytes);

/* Call and record mremap; wanted counts with MREMAP_FIXED only. Returns its result. */
void *torsh_vm_remap(void *at, size_t old_bytes, size_t n_bytes, int flags, void *wanted,
		     const void *frame);

/* Call and record brk. Returns its result. */
int torsh_vm_break(void *to, const void *frame);

/* Call and record sbrk. Returns its result: the break before, or (void *)-1. */
void *torsh_vm_move_break(intptr_t by, const void *frame);

/* shmat has attached the segment of this id at this address. */
void torsh_vm_attached(void *at, int id, const void *frame);

/* Call and record shmdt. Returns its result. */
int torsh_vm_detach(const void *at);

/* madvise has succeeded with this advice. */
void torsh_vm_advised(void *at, size_t n_bytes, int advice);

/*
 * The environment of a child that executes a program, and the report about the program: prepared
 * before the program is started (agent/process/environment.h).
 */
struct program_start;
struct child_plan {
	char *const *envp; /* as the caller passed it */
	bool is_apart; /* it must not load the agent */
	enum program_problem problem;
	/* pages of the plan's own where there is a problem, else NULL */
	struct program_start *start;
	/* the same for an environment too large for the stack, of n_slots, else NULL */
	char **slots;
	size_t n_slots;
};

/* Process: collectors/process/process_events.c. */
void torsh_process_forking(void); /* before */
void torsh_process_forked(pid_t child); /* in the parent */
void torsh_process_created(void); /* in the child */
/*
 * An exec is about to be called with the plan's environment. If the result is not 0, the caller
 * passes it to torsh_process_not_executed when the exec fails.
 */
int torsh_process_executing(struct child_plan *plan, char *const *argv);

/* The exec failed: the process goes on. reported: the result of torsh_process_executing. */
void torsh_process_not_executed(int reported);
/* posix_spawn started a child by the plan. */
void torsh_process_spawned(pid_t child, const struct child_plan *plan, char *const *argv);

/* The process ends by exit, _exit or quick_exit; and by abort. */
void torsh_process_exiting(int status, enum exit_how how);

/* The interpreter begins to end: from now on it frees what it holds. */
void torsh_process_finalizing(void);

/* The process ends by abort or a failed assertion. */
void torsh_process_aborting(void);
/*
 * The process is about to install a seccomp filter that may kill it for the agent's system calls.
 */
void torsh_process_forbidding(void);
/*
 * The calling thread, or all threads, are about to install a harmless filter. Returns whether it
 * was counted for the writer; torsh_process_filtered takes that, with the outcome.
 */
bool torsh_process_filtering(bool is_for_all);

/* The harmless filter was added, or not; only after torsh_process_filtering returned true. */
void torsh_process_filtered(bool is_added);
/*
 * The calling thread is about to lose most system calls, or the time stamp counter: it is not
 * recorded any more. If it returns true, the caller calls torsh_process_not_muted when that fails.
 */
bool torsh_process_muting(void);

/* The thread has lost nothing: it is recorded again. */
void torsh_process_not_muted(void);

/* Code was unmapped outside of dlclose: cached unwind rules may be stale. */
void torsh_process_code_unmapped(void);
/* A library with references to malloc that bypass the agent is about to be opened. */
void torsh_process_loading_apart(const char *path);
/* An allocator is about to be opened; its own functions are not interposed. */
void torsh_process_loading_allocator(const char *path);

/*
 * PyTorch: collectors/torch/tensor_events.c and operator_events.c. device is as in event_tensor;
 * allocated and reserved are the allocator's sums in bytes, 0 if it has none.
 */

/* Returns whether events of tensors are recorded. */
bool torsh_torch_wants_memory(void);

/*
 * Returns whether the CPU's allocator is to report all blocks: not if it did not from the begin on,
 * because it prints a warning when one that it did not report is freed.
 */
bool torsh_torch_wants_cpu_memory(void);

/* A block was allocated, or is about to be freed: then n_bytes is negative. */
void torsh_torch_memory(void *block, int64_t n_bytes, uint64_t allocated, uint64_t reserved,
			uint32_t device, const void *frame);

/* An allocation of n_bytes failed. */
void torsh_torch_out_of_memory(int64_t n_bytes, uint64_t allocated, uint64_t reserved,
			       uint32_t device, const void *frame);

/* A library is about to be opened. */
void torsh_torch_loading(const char *path);

/* libtorch is loaded, and its static objects are constructed. */
void torsh_torch_found(void);

/* A c10d::Work was constructed, in the call of c10d that the thread is in. */
void torsh_torch_work_made(const void *work);

/* gloo's thread begins to communicate for the work. */
void torsh_torch_work_runs(const void *work);

/* The work is finished; its end was not reported before. */
void torsh_torch_work_ends(const void *work, bool has_failed);

/*
 * The thread waits for the work. Returns when, for torsh_torch_work_waited after it; 0: the work is
 * not recorded.
 */
uint64_t torsh_torch_work_waits(const void *work);

/*
 * The work is completed by this future, which has its condition in these first bytes, after its
 * counts of references, a mutex and a flag. It is longer, so that no other object is there. Returns
 * whether waits for it are recorded.
 */
#define TORCH_FUTURE_BYTES 128u
bool torsh_torch_work_future(const void *work, const void *future);

/*
 * The thread waits for a condition. Returns the number of the collective to whose future it
 * belongs, for torsh_torch_future_waited after the wait; 0: to none.
 */
uint32_t torsh_torch_future_waits(const void *condition);
void torsh_torch_future_waited(uint32_t number, uint64_t begin_ns);

/* The wait is over, without an exception. is_end: so is the work. */
void torsh_torch_work_waited(const void *work, uint64_t begin_ns, bool is_end);

/* Python: collectors/python/python_runs.c. A library is about to be opened, outside of any hook. */
void torsh_python_loading(const char *path);

/* CUDA: collectors/cuda/cuda.c. The driver starts; there is no context yet. */
void torsh_cuda_injected(void);

/* The process is about to end: fetch the last records. Waits for a limited time. */
void torsh_cuda_exiting(void);

/* The process is about to exec: fetch the records so far. Waits for a limited time. */
void torsh_cuda_executing(void);

/*
 * Prepare a plan for a child with this environment. program: path of the program, NULL if unknown.
 */
void torsh_process_plan(struct child_plan *plan, const char *program, char *const *envp);
/* Free what the plan owns. Keeps errno. */
void torsh_process_drop_plan(struct child_plan *plan);
/*
 * The slots that the environment needs, 0 if envp can be passed on as it is. Many slots are pages
 * of the plan; a child after vfork does not map them, because they would stay mapped after its
 * exec.
 */
size_t torsh_process_environment_slots(struct child_plan *plan);

/* The environment to pass on, built in slots (on the caller's stack, or the plan's). */
char *const *torsh_process_environment(const struct child_plan *plan, char **slots);

#define DESCRIPTOR_PATH_MAX 32

/* Write the path by which the program of a descriptor can be executed (/proc/self/fd/N). */
void torsh_process_name_descriptor(int fd, char path[DESCRIPTOR_PATH_MAX]);

/*
 * Waits: collectors/waits/wait_events.c. What a wrapper keeps from before the call to after it.
 */
struct wait_entry;

struct wait_hook {
	uint32_t kind; /* enum thread_wait_kind */
	bool is_inner; /* the thread was in another hook: the call is not recorded */
	bool is_free; /* set after the begin: the call may find what it waits for */
	uint32_t wake; /* where who ends the wait leaves its record; 0: nowhere */
	uint64_t object, begin_ns; /* CLOCK_MONOTONIC */
	uint64_t awaited; /* the object, or a file behind a descriptor */
	struct wait_entry *entry; /* of the thread; NULL: none */
};

/* A function in which a thread may wait for the object is about to be called. */
void torsh_wait_begins(struct wait_hook *hook, uint32_t kind, uint64_t object);

/*
 * Whether it is likely that a read or a poll waits: the thread's last one of the same descriptor
 * did, for a millisecond. Only then system calls find out for what. True once after each such wait.
 */
bool torsh_wait_is_likely(struct wait_hook *hook);

/*
 * It waits for a file that other threads may make readable: by this name, of WAKE_FILE and bits
 * below, these know it. torsh_wait_n_files: how many threads do so, at least.
 */
#define WAKE_FILE (UINT64_C(1) << 47) /* no address of a program has it, but with 48 bits */
extern _Atomic uint32_t torsh_wait_n_files;
void torsh_wait_awaits(struct wait_hook *hook, uint64_t file);

/* It returned this. A call that is left by an exception or a jump is not reported. */
void torsh_wait_ends(struct wait_hook *hook, long returned, const void *frame);

/*
 * A function that ends waits for the object is about to be called: of one thread, of all, or of the
 * thread that gets the lock. Called in signal handlers, too.
 */
enum wake_whom { WAKE_ONE, WAKE_ALL, WAKE_NEXT_OWNER };
void torsh_wait_wakes(uint64_t object, enum wake_whom whom);

/*
 * Samples of processor time: collectors/cpu/cpu_sampler.c. Whether threads are to be followed from
 * their start on, for these or for counters.
 */
bool torsh_cpu_follows_threads(void);

/* Whether the calling thread believes that it has blocked the sampler's signal. */
bool torsh_cpu_masks_is_blocked(void);

/* The calling thread has started, and inherits that. */
void torsh_cpu_thread_starts(bool is_blocked);

/* A change of the calling thread's mask, as the program sees it. */
struct cpu_masking {
	bool was_blocked, is_blocked; /* the sampler's signal */
	bool is_changed; /* another set is passed on */
};

/*
 * The program changes or queries the mask: set may be NULL. Returns whether the sampler has a
 * signal; then torsh_cpu_masked follows where the call succeeds. *changed is the set to pass on if
 * masking->is_changed.
 */
bool torsh_cpu_masking(struct cpu_masking *masking, int how, const sigset_t *set,
		       sigset_t *changed);
void torsh_cpu_masked(const struct cpu_masking *masking, sigset_t *old);

/* The set of signals to wait for: set, or *changed. */
const sigset_t *torsh_cpu_waiting(const sigset_t *set, sigset_t *changed);

/* Take the sampler's signal out of what is pending. */
void torsh_cpu_pending(sigset_t *set);

/*
 * The calling thread starts a program, which gets its mask as the program sees it; and that is
 * done, or failed.
 */
void torsh_cpu_masks_for_child(bool begins);

/*
 * The program sets or queries the action of a signal. Returns whether the call is answered: the
 * signal is the sampler's, and *old was filled. The sampler gives the signal up where the program
 * takes it.
 */
bool torsh_cpu_signal_asked(int number, const struct sigaction *action, struct sigaction *old);

/*
 * MPI: collectors/mpi/mpi_calls.c. What a wrapper keeps from before the call to after it.
 */
struct mpi_arguments;

#define MPI_HOOK_STATUSES 6u

struct mpi_hook {
	bool is_inner; /* the library called it within a function that the program called */
	bool has_statuses; /* statuses are passed instead of the program's, which wants none */
	bool is_uncertain; /* the receive's number isn't known before it is complete */
	bool is_alone; /* no other such receive of the communicator was there */
	uint32_t joined; /* such receives so far */
	uint32_t comm; /* number of the communicator's group, 0: not known */
	uint32_t number, received; /* of the events that were sent, 0: none */
	uint32_t requests; /* index + 1 of the first that the call is about, 0: none */
	uint64_t begin_ns; /* CLOCK_MONOTONIC */
	uint64_t order; /* of the communicator's children, of what is made */
	uint64_t probe_begin_ns, probe_ns; /* that took the message which is received now */
	_Alignas(8) uint8_t statuses[MPI_HOOK_STATUSES * 32];
};

/* A function of MPI is about to be called. May change its status argument. */
void torsh_mpi_begins(struct mpi_hook *hook, int number, const struct mpi_arguments *arguments);

/* It returned this. */
void torsh_mpi_ends(struct mpi_hook *hook, int number, const struct mpi_arguments *arguments,
		    uintptr_t result);

/*
 * Requests that a server gets: collectors/ranges/http_requests.c.
 *
 * What recv returned, without MSG_PEEK and the like. is_in_loop: its thread serves several
 * connections by turns.
 */
void torsh_http_received(int fd, const void *data, ssize_t n, bool is_in_loop);

/* What send returned. */
void torsh_http_sent(int fd, const void *data, ssize_t n);

/*
 * BLAS and LAPACK: collectors/blas/blas_calls.c. The frame of a call; shim/blas/blas_entry_*.S know
 * the places of its first fields.
 */
#ifdef __aarch64__
#define BLAS_REGISTERS 8u
#else
#define BLAS_REGISTERS 6u
#endif
#define BLAS_LETTERS 4u

struct blas_frame {
	uint64_t registers[BLAS_REGISTERS]; /* the first arguments; */
	const uint64_t *stack; /* and the others */
	void *next; /* to call */
	uint64_t n_stack; /* even: how many of the others the routine may have */
	uint64_t results[4]; /* of the routine, and what else has to be kept */
	/* What collectors/blas keeps from before the call to after it. */
	struct blas_slot *slot;
	uint64_t begin_ns;
	uint64_t m, n, k, batch; /* and 1; 0: it has none */
	uint32_t letters; /* one in each byte, from the lowest on */
	bool is_recorded;
};

/* The object has routines of its own, whose calls are not seen, or none. */
void torsh_blas_unseen(const char *library);

/* oneDNN executed a primitive and prints this line. caller: as for torsh_blas_ends. */
void torsh_dnnl_executed(const char *line, const void *caller);

/* The routine of the frame's slot is about to be called. Returns whether the call is recorded. */
bool torsh_blas_begins(struct blas_frame *frame);

/* A recorded call returned. caller: the frame address of the slot's call, for the stack. */
void torsh_blas_ends(const struct blas_frame *frame, const void *caller);

#endif
