/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One real step from a frame to the next outer one, for all kinds of frames (x86-64). The capture
 * does the common kinds by itself, and comes here for the rest.
 *
 * Where a step follows a guess (a frame pointer in code that nothing describes) or goes unusually
 * far, memory is only read when it is known to be there.
 */
#ifndef TORSH_AGENT_STACK_STEP_H
#define TORSH_AGENT_STACK_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/modules/memory_probe.h"
#include "agent/stack/unwind_full.h"

/* Reads up to here above a frame's sp are taken to lie on its stack. */
#define STEP_NEAR_BYTES (16u << 10)

/*
 * sp: rsp at the return point; tagged_ip: the tagged return address (agent/stack/unwind_rule.h);
 * bp: rbp there.
 */
struct step_frame {
	uintptr_t sp;
	uint64_t tagged_ip;
	uintptr_t bp;
};

enum step_result {
	STEP_NEXT, /* the frame is the outer one now */
	STEP_END, /* it was the outermost */
	/* it was the outermost, by an address of 0 in memory: the frame has that address */
	STEP_END_READ,
	STEP_CUT_UNKNOWN, /* ADDRESS_CUT_UNKNOWN_CODE */
	STEP_CUT_BAD, /* ADDRESS_CUT_BAD_FRAME */
	STEP_NOWHERE, /* the frame's own address is no code: the step before was wrong */
};

/* One capture's state; is_guessing and has_cursor are false at its start. */
struct stepper {
	bool is_guessing; /* a frame further in had no unwind information */
	bool has_cursor;
	uintptr_t hook_sp; /* of the hook's caller */

	/*
	 * Readable memory around hook_sp, see torsh_step_start. Frames lie outside of it that will
	 * be returned to: nobody unmaps those, so that it holds as long as hook_sp stays in it.
	 */
	uintptr_t low, high;

	struct unwind_cursor cursor;
	struct cfi_scratch scratch;
};

/* Begin a capture in the frame that the hook with this sp returns to. */
static inline void torsh_step_start(struct stepper *stepper, uintptr_t hook_sp)
{
	stepper->is_guessing = false;
	stepper->has_cursor = false;
	stepper->hook_sp = hook_sp;
	if (__builtin_expect(hook_sp - stepper->low >= stepper->high - stepper->low, 0)) {
		/* The page of the hook's return address. */
		stepper->low = torsh_probe_page(hook_sp - 8);
		stepper->high = stepper->low + PROBE_PAGE_BYTES;
	}
}

/* Whether this word lies in the memory around hook_sp that is readable. */
static inline bool torsh_step_is_readable(const struct stepper *stepper, uintptr_t address)
{
	return address - stepper->low <= stepper->high - 8 - stepper->low;
}

/*
 * Step out of *frame by *rule. RULE_UNPROVABLE is added to *rule when reading the step's slots
 * again would not prove that it would be the same again.
 */
enum step_result torsh_step(struct stepper *stepper, struct step_frame *frame, uint64_t *rule);

#endif
