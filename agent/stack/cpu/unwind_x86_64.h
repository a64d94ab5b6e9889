/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Unwinding on x86-64. A return address is always right below the CFA. RULE_OWN: CFA = *(rbp +
 * offset), functions that align their stack; rbp at rbp + bp_where.
 *
 * Rules: bits 0-2 kind, 3 RULE_RESTORES_BP, 4-15 bp_where / 8, 16-39 offset / 8; the others are
 * described in agent/stack/unwind_rule.h.
 */
#ifndef TORSH_AGENT_STACK_CPU_UNWIND_X86_64_H
#define TORSH_AGENT_STACK_CPU_UNWIND_X86_64_H

#include <ucontext.h>

#include "agent/process/checks.h"
#include "shim/registers_x86_64.h"
#include "shim/sys.h"

/* DWARF numbers (psABI figure 3.36); rip is the return address. */
enum cfi_register {
	CFI_RAX,
	CFI_RDX,
	CFI_RCX,
	CFI_RBX,
	CFI_RSI,
	CFI_RDI,
	CFI_RBP,
	CFI_RSP,
	CFI_R8,
	CFI_R12 = 12,
	CFI_R13,
	CFI_R14,
	CFI_R15,
	CFI_RIP,
	CFI_N_REGISTERS,
	CFI_FP = CFI_RBP,
	CFI_SP = CFI_RSP,
	CFI_IP = CFI_RIP,
	CFI_RETURN_ADDRESS = CFI_RIP, /* its column in unwind information */
};

/* Instructions of call frame information that only this CPU has and that change no location. */
static inline bool torsh_cfi_is_ignored(uint8_t op)
{
	(void)op;
	return false;
}

/*
 * mov $SYS_rt_sigreturn,%rax; syscall: the return address in the kernel's signal frame, with any C
 * library.
 */
#define UNWIND_SIGNAL_RETURN                                         \
	{                                                            \
		0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05 \
	}

/* Offset from sp of uc_mcontext.gregs in the ucontext there, and of those needed most. */
#define SIGNAL_REGISTERS 40u
#define SIGNAL_FP (SIGNAL_REGISTERS + 8 * 10u)
#define SIGNAL_SP (SIGNAL_REGISTERS + 8 * 15u)
#define SIGNAL_IP (SIGNAL_REGISTERS + 8 * 16u)
/* DWARF numbers in their order: r8-r15 rdi rsi rbp rbx rdx rax rcx rsp rip. */
#define SIGNAL_ORDER                                                                       \
	{                                                                                  \
		8, 9, 10, 11, 12, 13, 14, 15, CFI_RDI, CFI_RSI, CFI_RBP, CFI_RBX, CFI_RDX, \
			CFI_RAX, CFI_RCX, CFI_RSP, CFI_RIP                                 \
	}

#define UNWIND_LONGEST_CALL 7u

/* A step by the chain of frame pointers finds the outer frame's sp: rbp + 16. */
#define UNWIND_CHAIN_HAS_SP true

static inline intptr_t torsh_unwind_rule_bp_where(uint64_t rule)
{
	return (int64_t)(rule << 48) >> 52 << 3;
}

static inline intptr_t torsh_unwind_rule_offset(uint64_t rule)
{
	return (int64_t)(rule << 24) >> 40 << 3;
}

/* From the CFA to the return address. */
static inline intptr_t torsh_unwind_rule_ip_where(uint64_t rule)
{
	(void)rule;
	return -8;
}

/* What a slot with this return address holds. */
static inline uintptr_t torsh_unwind_saved_ip(uintptr_t slot, uintptr_t ip)
{
	(void)slot;
	return ip;
}

static inline bool torsh_unwind_holds_ip(uintptr_t slot, uintptr_t ip)
{
	struct check check = {.slot = slot, .value = ip};

	return torsh_check_holds(&check);
}

/* A frame of a cached suffix (agent/stack/capture/suffixes.h). */
struct suffix_frame {
	uintptr_t sp;
	uint64_t tagged_ip;
	uintptr_t bp;
	uint32_t id;
	int16_t bp_where; /* the step out of the frame read rbp at the outer frame's sp plus this */
	bool reads_bp; /* that value affects an outer step */
	bool needs_bp;
};

/* The slots that the step out of f, to outer, has read. */
static inline uintptr_t torsh_suffix_ip_slot(const struct suffix_frame *f,
					     const struct suffix_frame *outer)
{
	(void)f;
	return outer->sp - 8;
}

static inline uintptr_t torsh_suffix_bp_slot(const struct suffix_frame *f,
					     const struct suffix_frame *outer)
{
	return outer->sp + (uintptr_t)f->bp_where;
}

/* bp_slot counts only if reads_bp. Returns false if they don't fit. */
static inline bool torsh_suffix_set_slots(struct suffix_frame *f, uintptr_t outer_sp,
					  uintptr_t ip_slot, uintptr_t bp_slot)
{
	(void)ip_slot;
	f->bp_where = (int16_t)(bp_slot - outer_sp);
	return true;
}

/* libunwind's names for this CPU, and the words of its unw_cursor_t, which its ABI fixes. */
#define LIBUNWIND_CPU "x86_64"
#define LIBUNWIND_CURSOR_WORDS 127

/* What libunwind starts from: get is its own getcontext. Returns 0, or not. */
static inline __attribute__((always_inline)) int torsh_unwind_context(int (*get)(ucontext_t *),
								      ucontext_t *context)
{
	return get ? get(context) : -1;
}

/* What the code that a signal interrupted was about to do. */
static inline struct cpu_caller torsh_unwind_interrupted(const ucontext_t *at)
{
	const greg_t *registers = at->uc_mcontext.gregs;

	return (struct cpu_caller){.ip = (uintptr_t)registers[REG_RIP],
				   .sp = (uintptr_t)registers[REG_RSP],
				   .bp = (uintptr_t)registers[REG_RBP]};
}

/* The caller of the hook whose __builtin_frame_address(0) is frame. */
static inline struct cpu_caller torsh_unwind_hook_caller(const void *frame,
							 struct recent_functions *recent)
{
	(void)recent;
	return torsh_cpu_caller(frame);
}

#endif
