/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What unwinding needs to know of the CPU: the numbers of its registers, where a frame's return
 * address lies, how rules are packed, and the kind of rule that only it has. One header and one
 * source file for each CPU; everything else in agent/stack is the same for all.
 *
 * A "bp" is the frame pointer: rbp, x29.
 */
#ifndef TORSH_AGENT_STACK_CPU_UNWIND_CPU_H
#define TORSH_AGENT_STACK_CPU_UNWIND_CPU_H

#include <stdbool.h>
#include <stdint.h>

struct cfi_row;
struct check;
struct recent_functions;
struct step_frame;
struct stepper;

enum rule_kind {
	/* 0 means "not compiled yet". CFA: the stack pointer of the outer frame. */
	RULE_SP = 1, /* CFA = sp + offset; bp at CFA + bp_where */
	RULE_FP, /* CFA = bp + offset; bp at CFA + bp_where */
	RULE_OWN, /* the CPU's own kind: torsh_unwind_step_own */
	RULE_SIGNAL, /* sp points to the signal frame of the interrupted code */
	RULE_STOP, /* the outermost frame */
	RULE_NO_INFO, /* no unwind information: chain of frame pointers, if it looks like one */
	RULE_BAD, /* needs other registers, or does not fit */
};

#define RULE_RESTORES_BP 8u
/* not code: the previous step was wrong; never cached */
#define RULE_NOWHERE (RULE_STOP | RULE_RESTORES_BP)

#if defined(__x86_64__)
#include "agent/stack/cpu/unwind_x86_64.h"
#elif defined(__aarch64__)
#include "agent/stack/cpu/unwind_aarch64.h"
#else
#error "the agent unwinds only x86-64 and aarch64"
#endif

#define UNWIND_CHAIN_FARTHEST (1u << 20)

/* Whether bp can be the frame pointer of a function with this sp. It may still be invalid. */
static inline bool torsh_unwind_is_chain(uintptr_t sp, uintptr_t bp)
{
	return bp % 8 == 0 && bp >= sp && bp - sp < UNWIND_CHAIN_FARTHEST;
}

/*
 * The rule that the row describes, without an id. ip is the frame's address; is_exact: it is that
 * of an interrupted instruction, no return address.
 */
uint64_t torsh_unwind_pack(const struct cfi_row *row, uintptr_t ip, bool is_exact);

/* Whether the UNWIND_LONGEST_CALL readable bytes before ip end with a call. */
bool torsh_unwind_follows_call(uintptr_t ip);

/* torsh_step for a rule of RULE_OWN. Returns an enum step_result. */
int torsh_unwind_step_own(struct stepper *stepper, struct step_frame *frame, uint64_t *rule);

/*
 * Write the checks that prove such a step from *f to *outer, but for RULE_UNPROVABLE; the slot that
 * was read first comes last. Returns their number, 3 at most.
 */
uint32_t torsh_unwind_checks_own(const struct step_frame *f, const struct step_frame *outer,
				 bool is_bp_used, uint64_t rule, struct check *checks);

#endif
