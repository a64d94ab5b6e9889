/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Rules and frames that only aarch64 has. */
#include "agent/stack/cpu/unwind_cpu.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include "agent/stack/dwarf/cfi.h"
#include "agent/stack/recent_functions.h"
#include "agent/stack/step.h"
#include "agent/stack/unwind_rule.h"

/* The kernel's signal frame: siginfo, then the ucontext. */
#define SIGNAL_SIGINFO 128u

_Static_assert(SIGNAL_REGISTERS == SIGNAL_SIGINFO + offsetof(ucontext_t, uc_mcontext.regs) &&
		       SIGNAL_SP == SIGNAL_SIGINFO + offsetof(ucontext_t, uc_mcontext.sp) &&
		       SIGNAL_IP == SIGNAL_SIGINFO + offsetof(ucontext_t, uc_mcontext.pc),
	       "registers of a signal frame");

/* bl; blr, blraa and the like */
bool torsh_unwind_follows_call(uintptr_t ip)
{
	uint32_t instruction;

	memcpy(&instruction, (const void *)(ip - sizeof(instruction)), sizeof(instruction));
	return instruction >> 26 == 0x25 || (instruction & 0xfffffc1f) == 0xd63f0000 ||
	       (instruction & 0xfefff800) == 0xd63f0800;
}

/* ip_where, bp_where: 0 where nothing was saved. RULE_BAD if they don't fit. */
static uint64_t pack(enum rule_kind kind, intptr_t ip_where, intptr_t bp_where, intptr_t offset)
{
	intptr_t ip_at = -ip_where / 8, cfa = offset / 16,
		 bp_at = bp_where ? (bp_where - ip_where) / 8 : 0;

	if (ip_where % 8 || bp_where % 8 || offset % 16 || ip_at < 0 || ip_at > 0x3fff ||
	    bp_at < -32 || bp_at > 31 || cfa < -32768 || cfa > 32767)
		return RULE_BAD;
	return (uint64_t)kind | (bp_where ? RULE_RESTORES_BP : 0) | ((uint64_t)bp_at & 0x3f) << 4 |
	       (uint64_t)ip_at << 10 | ((uint64_t)cfa & 0xffff) << 24;
}

uint64_t torsh_unwind_pack(const struct cfi_row *row, uintptr_t ip, bool is_exact)
{
	const struct cfi_where *lr = &row->registers[CFI_RETURN_ADDRESS],
			       *fp = &row->registers[CFI_FP];
	bool saves_bp = fp->location == CFI_AT_CFA;
	enum rule_kind kind = row->cfa_register == CFI_FP ? RULE_FP : RULE_SP;

	(void)ip;
	if (lr->location == CFI_UNDEFINED)
		return RULE_STOP;
	if (row->is_signal_frame || row->cfa_block || row->registers[CFI_SP].location != CFI_SAME ||
	    (row->cfa_register != CFI_SP && row->cfa_register != CFI_FP) ||
	    (!saves_bp && fp->location != CFI_SAME && fp->location != CFI_UNDEFINED))
		return RULE_BAD;
	/* After a call the link register holds another function's return address. */
	if (lr->location == CFI_SAME)
		return is_exact && kind == RULE_SP && !saves_bp && row->cfa_offset >= 0
			       ? pack(RULE_OWN, 0, 0, row->cfa_offset)
			       : RULE_BAD;
	if (lr->location != CFI_AT_CFA || lr->value >= 0 || (saves_bp && fp->value >= 0))
		return RULE_BAD;
	return pack(kind, lr->value, saves_bp ? fp->value : 0, row->cfa_offset);
}

/* Nothing but the signal frame proves the link register. */
int torsh_unwind_step_own(struct stepper *s, struct step_frame *f, uint64_t *rule)
{
	uintptr_t ip;

	*rule |= RULE_UNPROVABLE;
	if (!s->signal_sp || !torsh_step_read(s, s->signal_sp, s->signal_sp + SIGNAL_LR, &ip, rule))
		return STEP_CUT_BAD;
	ip = torsh_cpu_code_address(ip);
	if (!ip)
		return STEP_END;
	if (!torsh_unwind_rule_can_be_ip(ip))
		return STEP_CUT_BAD;
	f->sp += (uintptr_t)torsh_unwind_rule_offset(*rule);
	f->tagged_ip = torsh_tagged_ip(ip, IP_TAG_CALL);
	return STEP_NEXT;
}

uint32_t torsh_unwind_checks_own(const struct step_frame *f, const struct step_frame *outer,
				 bool is_bp_used, uint64_t rule, struct check *checks)
{
	(void)f;
	(void)outer;
	(void)is_bp_used;
	(void)rule;
	(void)checks;
	return 0;
}

/* ---- the caller of a hook ---- */

struct record {
	const struct record *outer; /* x29 */
	uintptr_t ip; /* x30 */
};

/*
 * From the record of a function to its CFA, by a return address in it: address | distance / 16 <<
 * 48. The functions are the agent's own, which is never unmapped.
 */
#define N_DISTANCES 256u
static _Atomic uint64_t distances[N_DISTANCES];

/* Not inlined: it is rare. */
static __attribute__((noinline)) uintptr_t find_distance(uintptr_t ip,
							 struct recent_functions *recent)
{
	struct looked_up found = torsh_recent_functions_look_up(recent, ip - 1);
	bool is_known = found.answer != MODULE_NONE && !found.err &&
			found.row->registers[CFI_FP].location == CFI_AT_CFA;

	return is_known ? (uintptr_t)-found.row->registers[CFI_FP].value : sizeof(struct record);
}

static uintptr_t distance_to_cfa(uintptr_t ip, struct recent_functions *recent)
{
	_Atomic uint64_t *known = &distances[ip / 4 % N_DISTANCES];
	uint64_t entry = atomic_load_explicit(known, memory_order_relaxed);
	uintptr_t distance;

	if (__builtin_expect((entry ^ ip) << 16 == 0, 1))
		return entry >> 48 << 4;
	distance = find_distance(ip, recent);
	if (ip >> 48 == 0 && distance >> 20 == 0 && distance % 16 == 0)
		atomic_store_explicit(known, ip | (uint64_t)(distance / 16) << 48,
				      memory_order_relaxed);
	return distance;
}

/*
 * Where the hook has gone on to the next function by a jump, that function's record is the last one
 * before frame, and its CFA is the hook's.
 */
struct cpu_caller torsh_unwind_hook_caller(const void *frame, struct recent_functions *recent)
{
	const struct record *record = __builtin_frame_address(0);
	uintptr_t ip;

	do {
		ip = record->ip;
		record = record->outer;
	} while (record->outer > record && (const void *)record->outer <= frame);
	ip = torsh_cpu_code_address(ip);
	return (struct cpu_caller){.ip = torsh_cpu_code_address(record->ip),
				   .sp = (uintptr_t)record + distance_to_cfa(ip, recent),
				   .bp = (uintptr_t)record->outer};
}
