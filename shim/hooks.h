/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the exported functions tell the collectors: declared here, by the caller, and defined in
 * collectors/, so that the shim knows nothing of what is recorded. frame is the exported function's
 * __builtin_frame_address(0). All keep errno and never fail towards the caller.
 */
#ifndef TORSH_SHIM_HOOKS_H
#define TORSH_SHIM_HOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/wire/event.h"

#define EXPORT __attribute__((visibility("default")))
#define HOOK_FRAME __builtin_frame_address(0)
#define HOOK_CALLER __builtin_return_address(0)

/* Heap: collectors/heap/heap_events.c. block may be NULL: the call failed. */
void torsh_heap_allocated(void *block, size_t size, enum alloc_entry entry, const void *frame);
/* By another allocator than malloc's, which can't be asked for its usable size. */
void torsh_heap_allocated_elsewhere(void *block, size_t size, enum alloc_entry entry,
				    const void *frame);
/*
 * Between these what the calling thread asks for is an allocator's own and is not recorded; leave
 * gets what enter returned.
 */
void *torsh_heap_enter_allocator(void);
void torsh_heap_leave_allocator(void *outer);
void torsh_heap_freeing(void *block);
void torsh_heap_resizing(void *block);
void torsh_heap_not_resized(void *block);
/* The program marks a block as no leak. */
void torsh_heap_ignored(void *block);

/* What most programs don't have, in one word for the hooks to look at. */
enum { HEAP_OPERATORS_RECORD = 1, HEAP_LSAN_DISABLES = 2 };
extern int torsh_heap_exceptions;

/* LeakSanitizer's interface: a block was allocated and recorded (shim/allocators/lsan.c). */
void torsh_lsan_allocated(void *block);

/*
 * Address space: collectors/heap/mapping_events.c. Each makes the call, so that its stamp can be
 * taken before it.
 */
void torsh_vm_mapped(void *at, size_t n_bytes, int prot, int flags, int fd, off_t offset,
		     const void *frame);
int torsh_vm_unmap(void *at, size_t n_bytes);
void *torsh_vm_remap(void *at, size_t old_bytes, size_t n_bytes, int flags, void *wanted,
		     const void *frame);
int torsh_vm_break(void *to, const void *frame);
void *torsh_vm_move_break(intptr_t by, const void *frame);
void torsh_vm_advised(void *at, size_t n_bytes, int advice);

/*
 * What a child that runs a program is to find in its environment, and what is to be said of the
 * program: made before the program is started. See agent/process/environment.h.
 */
struct program_start;
struct child_plan {
	char *const *envp; /* as the caller wants it */
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
 * An exec is about to be called, which needs no more of the plan than the environment. Not 0:
 * torsh_process_not_executed gets it when the exec failed.
 */
int torsh_process_executing(struct child_plan *plan, char *const *argv);
void torsh_process_not_executed(int told);
/* posix_spawn made a child by the plan. */
void torsh_process_spawned(pid_t child, const struct child_plan *plan, char *const *argv);
void torsh_process_exiting(int status, enum exit_how how);
void torsh_process_aborting(void);
/* The process is about to get a filter that may end it for calls of ours. */
void torsh_process_forbidding(void);
/*
 * The thread, or all with it, are about to get one that can't. Whether it is counted for the
 * writer, who would take it for an unknown one: torsh_process_filtered is to be called with the
 * outcome.
 */
bool torsh_process_filtering(bool is_for_all);
void torsh_process_filtered(bool is_added);
/*
 * The calling thread is about to lose all but a few system calls, or the time stamp counter: it is
 * recorded no further. Not 0: torsh_process_not_muted is to be called where that failed.
 */
int torsh_process_muting(void);
void torsh_process_not_muted(void);
void torsh_process_code_unmapped(void);
/* a library that will find another malloc than ours */
void torsh_process_loading_apart(const char *path);
/* an allocator, whose own functions are not interposed */
void torsh_process_loading_allocator(const char *path);

/*
 * PyTorch: collectors/torch/operator_events.c. n_bytes below 0: the block is about to be freed.
 * device as in event_tensor; allocated and reserved are the allocator's sums, 0 where it keeps
 * none.
 */
int torsh_torch_wants_memory(void);
void torsh_torch_memory(void *block, int64_t n_bytes, uint64_t allocated, uint64_t reserved,
			uint32_t device, const void *frame);
void torsh_torch_out_of_memory(int64_t n_bytes, uint64_t allocated, uint64_t reserved,
			       uint32_t device, const void *frame);
void torsh_torch_loading(const char *path); /* a library is about to be opened */
void torsh_torch_found(void); /* libtorch is loaded, and its static objects are made */

/*
 * CUDA: collectors/cuda/cuda.c. The driver starts, before there is a context; the process is about
 * to end, or to exec.
 */
void torsh_cuda_injected(void);
void torsh_cuda_exiting(void);
void torsh_cuda_executing(void);

/* program is NULL where it is not known. */
void torsh_process_plan(struct child_plan *plan, const char *program, char *const *envp);
/* Keeps errno. */
void torsh_process_drop_plan(struct child_plan *plan);
/*
 * How many slots the environment needs, 0 where envp can be passed on as it is. Many are in the
 * plan: pages, which a child after vfork doesn't take, as nobody would give them back when its exec
 * succeeds.
 */
size_t torsh_process_environment_slots(struct child_plan *plan);
char *const *torsh_process_environment(const struct child_plan *plan, char **slots);

/* The program behind a descriptor as a path. */
#define DESCRIPTOR_PATH_MAX 32
void torsh_process_name_descriptor(int fd, char path[DESCRIPTOR_PATH_MAX]);

#endif
