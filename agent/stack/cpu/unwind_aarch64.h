/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Unwinding on aarch64. A call leaves the return address in the link register, x30; a function that
 * calls others saves it anywhere in its frame, mostly right above x29, and perhaps signed (pointer
 * authentication). What is read from a slot is stripped of the signature before it is an address.
 * RULE_OWN: an interrupted function that has saved nothing yet: CFA = sp + offset, and the return
 * address is still in the link register, which the signal frame has.
 *
 * Rules: bits 0-2 kind, 3 RULE_RESTORES_BP, 4-9 (bp_where - ip_where) / 8, 10-23 -ip_where / 8,
 * 24-39 offset / 16; the others are described in agent/stack/unwind_rule.h.
 */
#ifndef TORSH_AGENT_STACK_CPU_UNWIND_AARCH64_H
#define TORSH_AGENT_STACK_CPU_UNWIND_AARCH64_H

#include <ucontext.h>

#include "agent/process/checks.h"
#include "shim/registers_aarch64.h"
#include "shim/sys.h"

/* DWARF numbers (AADWARF64 table 1): 0 to 30 are x0 to x30. */
enum cfi_register {
	CFI_X19 = 19,
	CFI_FP = 29,
	CFI_RETURN_ADDRESS, /* x30, and its column in unwind information */
	CFI_SP,
	CFI_IP,
	CFI_N_REGISTERS,
};

/*
 * Instructions of call frame information that only this CPU has and that change no location: from
 * here on the return address is signed or not (negate_ra_state, negate_ra_state_with_pc).
 * Signatures are always stripped.
 */
static inline bool torsh_cfi_is_ignored(uint8_t op)
{
	return op == 0x2d || op == 0x2c;
}

/* mov x8, #SYS_rt_sigreturn; svc #0: the return address of a signal handler. */
#define UNWIND_SIGNAL_RETURN                                   \
	{                                                      \
		0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4 \
	}

/* Offset from sp, behind siginfo, of uc_mcontext.regs in a signal frame: x0-x30, sp, pc. */
#define SIGNAL_REGISTERS 312u
#define SIGNAL_FP (SIGNAL_REGISTERS + 8 * 29u)
#define SIGNAL_LR (SIGNAL_REGISTERS + 8 * 30u)
#define SIGNAL_SP (SIGNAL_REGISTERS + 8 * 31u)
#define SIGNAL_IP (SIGNAL_REGISTERS + 8 * 32u)
/* Their DWARF numbers. */
#define SIGNAL_ORDER                                                                              \
	{                                                                                         \
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, \
			23, 24, 25, 26, 27, 28, CFI_FP, CFI_RETURN_ADDRESS, CFI_SP, CFI_IP        \
	}

#define UNWIND_LONGEST_CALL 4u

/*
 * A frame record may be anywhere in its frame: a step by the chain finds no more than a lower bound
 * of the outer frame's sp.
 */
#define UNWIND_CHAIN_HAS_SP false

/* From the CFA to the return address. */
static inline intptr_t torsh_unwind_rule_ip_where(uint64_t rule)
{
	return -(intptr_t)((rule >> 10 & 0x3fff) << 3);
}

static inline intptr_t torsh_unwind_rule_bp_where(uint64_t rule)
{
	return torsh_unwind_rule_ip_where(rule) + ((int64_t)(rule << 54) >> 58) * 8;
}

static inline intptr_t torsh_unwind_rule_offset(uint64_t rule)
{
	return ((int64_t)(rule << 24) >> 48) * 16;
}

/* What a slot with this return address holds: perhaps a signed one. */
static inline uintptr_t torsh_unwind_saved_ip(uintptr_t slot, uintptr_t ip)
{
	uintptr_t saved = *(const volatile uintptr_t *)slot;

	return torsh_cpu_code_address(saved) == ip ? saved : ip;
}

static inline bool torsh_unwind_holds_ip(uintptr_t slot, uintptr_t ip)
{
	return torsh_cpu_code_address(*(const volatile uintptr_t *)slot) == ip;
}

/* A frame of a cached suffix (agent/stack/capture/suffixes.h). */
struct suffix_frame {
	uintptr_t sp;
	uint64_t tagged_ip;
	uintptr_t bp;
	uint32_t id : 30;
	bool reads_bp : 1; /* the step out of the frame read x29, which affects an outer step */
	bool needs_bp : 1;
	int16_t ip_where, bp_where; /* from sp to the slots that this step read */
};

/* The slots that the step out of f, to outer, has read. */
static inline uintptr_t torsh_suffix_ip_slot(const struct suffix_frame *f,
					     const struct suffix_frame *outer)
{
	(void)outer;
	return f->sp + (uintptr_t)f->ip_where;
}

static inline uintptr_t torsh_suffix_bp_slot(const struct suffix_frame *f,
					     const struct suffix_frame *outer)
{
	(void)outer;
	return f->sp + (uintptr_t)f->bp_where;
}

/* bp_slot counts only if reads_bp. Returns false if they don't fit. */
static inline bool torsh_suffix_set_slots(struct suffix_frame *f, uintptr_t outer_sp,
					  uintptr_t ip_slot, uintptr_t bp_slot)
{
	(void)outer_sp;
	f->ip_where = (int16_t)(ip_slot - f->sp);
	f->bp_where = (int16_t)(bp_slot - f->sp);
	return ip_slot - f->sp <= INT16_MAX && (!f->reads_bp || bp_slot - f->sp <= INT16_MAX);
}

/*
 * libunwind's names for this CPU, and at least the words of its unw_cursor_t: versions differ in
 * them.
 */
#define LIBUNWIND_CPU "aarch64"
#define LIBUNWIND_CURSOR_WORDS 1024

/* What libunwind starts from; its getcontext is a macro here. Returns 0. */
static inline __attribute__((always_inline)) int torsh_unwind_context(int (*get)(ucontext_t *),
								      ucontext_t *context)
{
	(void)get;
	torsh_cpu_registers((uintptr_t *)context->uc_mcontext.regs);
	return 0;
}

/* What the code that a signal interrupted was about to do. */
static inline struct cpu_caller torsh_unwind_interrupted(const ucontext_t *at)
{
	return (struct cpu_caller){
		.ip = at->uc_mcontext.pc, .sp = at->uc_mcontext.sp, .bp = at->uc_mcontext.regs[29]};
}

/*
 * The caller of the hook whose __builtin_frame_address(0) is frame. Called by the function that the
 * hook called, or by one that it called in turn. The hook's record has the caller's address and
 * x29; its sp, the hook's CFA, is found by the hook's own unwind information.
 */
struct cpu_caller torsh_unwind_hook_caller(const void *frame, struct recent_functions *recent);

#endif
