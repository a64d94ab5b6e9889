/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A step from a frame to the next outer one, for all kinds of frames. The capture handles
 * the common kinds itself and uses this for the rest.
 *
 * If a step follows a guess (a frame pointer in code without unwind information) or goes unusually
 * far, memory is probed before it is read.
 */
#ifndef TORSH_AGENT_STACK_STEP_H
#define TORSH_AGENT_STACK_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/modules/memory_probe.h"
#include "agent/stack/unwind_full.h"

/* Reads up to this far above a frame's sp count as on its stack. */
#define STEP_NEAR_BYTES (16u << 10)
#define STEP_FARTHEST_CFA (UINT64_C(64) << 20)

/*
 * sp: the stack pointer at the return point; tagged_ip: the tagged return address
 * (agent/stack/unwind_rule.h); bp: the frame pointer there.
 */
struct step_frame {
	uintptr_t sp;
	uint64_t tagged_ip;
	uintptr_t bp;
};

enum step_result {
	STEP_NEXT, /* *frame is the outer frame now */
	STEP_END, /* the frame was the outermost */
	/* the frame was the outermost, because memory has an address of 0; *frame has that place */
	STEP_END_READ,
	STEP_CUT_UNKNOWN, /* ADDRESS_CUT_UNKNOWN_CODE */
	STEP_CUT_BAD, /* ADDRESS_CUT_BAD_FRAME */
	STEP_NOWHERE, /* the frame's own address is no code: the previous step was wrong */
};

/* The state of one capture; the first three start as false. */
struct stepper {
	bool is_guessing; /* a frame further in had no unwind information */
	bool has_cursor;
	bool is_sp_guessed; /* the frame's sp is a lower bound (UNWIND_CHAIN_HAS_SP) */
	uintptr_t signal_sp; /* of the signal frame right before this one, or 0 */
	uintptr_t hook_sp; /* of the hook's caller */

	/*
	 * Readable memory around hook_sp, see torsh_step_start. It holds frames to which the thread
	 * will return: nobody unmaps those, so the range is valid as long as hook_sp is in it.
	 */
	uintptr_t low, high;

	struct unwind_cursor cursor;
	struct recent_functions recent;
};

/* Begin a capture in the frame to which the hook with this sp returns. */
static inline void torsh_step_start(struct stepper *stepper, uintptr_t hook_sp)
{
	stepper->is_guessing = false;
	stepper->has_cursor = false;
	if (!UNWIND_CHAIN_HAS_SP)
		stepper->is_sp_guessed = false;
	stepper->hook_sp = hook_sp;
	if (__builtin_expect(hook_sp - stepper->low >= stepper->high - stepper->low, 0)) {
		/* The page of the hook's return address. */
		stepper->low = torsh_probe_page(hook_sp - 8);
		stepper->high = stepper->low + PROBE_PAGE_BYTES;
	}
}

/* Whether this word is in the readable memory around hook_sp. */
static inline bool torsh_step_is_readable(const struct stepper *stepper, uintptr_t address)
{
	return address - stepper->low <= stepper->high - 8 - stepper->low;
}

/*
 * Step out of *frame by *rule. Adds RULE_UNPROVABLE to *rule if re-reading the step's slots would
 * not prove that the same step is still valid.
 */
enum step_result torsh_step(struct stepper *stepper, struct step_frame *frame, uint64_t *rule);

/*
 * Parts of it, for the CPU's own kind of rule. Read a word of the frame with this sp; false: it
 * can't be read.
 */
bool torsh_step_read(struct stepper *stepper, uintptr_t sp, uintptr_t address, uintptr_t *value,
		     uint64_t *rule);

/* Step to the frame with its return address, and bp if the rule restores it, saved below cfa. */
enum step_result torsh_step_to(struct stepper *stepper, struct step_frame *frame, uint64_t *rule,
			       uintptr_t cfa, uintptr_t bp_slot);

#endif
