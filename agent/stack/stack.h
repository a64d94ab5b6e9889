/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How stacks are captured; first file of this folder, followed by step.h and dwarf/cfi.h.
 *
 * The native stack of the calling thread, exact and cheap: unwound only as far as it differs from
 * the thread's previous stack. Re-reading the saved return addresses of the outer frames proves
 * them unchanged.
 *
 * One struct stack belongs to one thread (a second one to the signal handlers that interrupt its
 * hooks). A capture returns the delta to the previous capture of the same struct; a caller that
 * sends deltas to the writer must send all of them, or reset.
 */
#ifndef TORSH_AGENT_STACK_STACK_H
#define TORSH_AGENT_STACK_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STACK_MAX_FRAMES 1024
#define STACK_POP_ALL UINT32_MAX

struct stack;

/*
 * ids of addresses (agent/modules/module_registry.h), outermost first; valid until the next
 * capture. STACK_READABLE of them can be read even if n_push is less.
 */
#define STACK_READABLE 8
struct stack_delta {
	uint32_t pop; /* number of innermost frames to remove, or STACK_POP_ALL: start over */
	uint32_t n_push;
	const uint32_t *push;
};

/*
 * Called once, before the first capture: finds _dl_find_object (or falls back to a module table).
 * Never allocates from the application's heap.
 */
void torsh_stack_start(void);

/* Returns the size in bytes of the pages that torsh_stack_create needs. */
size_t torsh_stack_bytes(void);

/*
 * Create a stack in torsh_stack_bytes() zeroed, page-aligned bytes, which stay the caller's. NULL
 * without memory for the shared tables.
 */
struct stack *torsh_stack_create(void *pages);

/* Release what the stack uses in addition to its pages. */
void torsh_stack_destroy(struct stack *stack);

/*
 * Capture the stack of the code that called the hook with this __builtin_frame_address(0).
 * Async-signal-safe, lock-free, keeps errno. A stack that can't be followed to its end gets a
 * pseudo-address as its outermost frame, which has the reason (ADDRESS_CUT_* of
 * agent/wire/channel.h).
 */
void torsh_stack_capture(struct stack *stack, const void *frame, struct stack_delta *delta);

/*
 * The same from a signal handler, for the code that it interrupted: at is what that was about to
 * do, as the kernel saved it.
 */
struct cpu_caller;
void torsh_stack_capture_interrupted(struct stack *stack, const struct cpu_caller *at,
				     struct stack_delta *delta);

#define STACK_IP_BITS 56

/* A frame of the last capture. Two are a cache line. */
struct stack_frame {
	uintptr_t sp; /* its locals are from here up to the sp of the next outer one */
	uint64_t tagged_ip; /* the return address is in the lower STACK_IP_BITS */
	uintptr_t bp; /* counts only if needs_bp */
	uint32_t n_checks; /* that prove everything outside of this frame */
	bool needs_bp; /* bp affects this frame's step, or an outer one */
};

/* The stack of the last capture, outermost first; valid until the next one. */
struct stack_view {
	uint32_t depth;
	const uint32_t *ids;
	const struct stack_frame *frames;
};

/* Fill *view from the last capture of stack. */
void torsh_stack_view(const struct stack *stack, struct stack_view *view);

/* Make the next capture send every frame (STACK_POP_ALL), after a delta was dropped. */
void torsh_stack_reset(struct stack *stack);

/* torsh_stack_reset, and discard the caches: a capture was abandoned. */
void torsh_stack_invalidate(struct stack *stack);

/* Discard every rule and cached frame of code that dlclose may have unmapped. Any thread. */
void torsh_stack_invalidate_code(void);

/*
 * For debugging: compare every n-th capture with the reference unwinder and count differences (0:
 * never). Returns -ENOENT if libunwind can't be opened. Not from a hook.
 */
int torsh_stack_check_every(uint32_t n);

#endif
