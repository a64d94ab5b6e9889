/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Reads what a step needs of a frame, where it may be unreadable. */
#include "agent/stack/step.h"

#include <errno.h>

#include "agent/modules/memory_probe.h"
#include "agent/stack/unwind_rule.h"
#include "shim/sys.h"

#define LARGEST_STACK (UINT64_C(8) << 20)

/*
 * The end of the thread's stack, if it can be found: the C library keeps per-thread data there,
 * above all frames. That of the first thread is elsewhere, as on other kinds of stacks; these end
 * where their memory ends.
 */
static uintptr_t end_of_stack(uintptr_t sp)
{
	uintptr_t own = torsh_cpu_thread_pointer();

	return sp < own ? own : UINTPTR_MAX;
}

/*
 * Whether address is in the readable memory around the hook's frame; extends that upwards if
 * needed.
 */
static bool is_on_stack(struct stepper *s, uintptr_t address)
{
	if (address < s->low || address - s->low > LARGEST_STACK ||
	    address >= end_of_stack(s->hook_sp))
		return false;
	while (!torsh_step_is_readable(s, address)) {
		/* If a filter prevents the query, the memory counts as readable. */
		if (torsh_sys_compare(s->high, 0) == -EFAULT)
			return false;
		s->high += PROBE_PAGE_BYTES;
	}
	return true;
}

bool torsh_step_read(struct stepper *s, uintptr_t sp, uintptr_t address, uintptr_t *value,
		     uint64_t *rule)
{
	bool is_near = address - sp < STEP_NEAR_BYTES;

	if (address % 8)
		return false;
	if (!is_near || !is_on_stack(s, address)) {
		if (!torsh_probe(address))
			return false;
		/*
		 * A guess led here. Next time the memory may be gone, and it would not be probed.
		 */
		if (s->is_guessing)
			*rule |= RULE_UNPROVABLE;
	}
	*value = *(const uintptr_t *)address;
	return true;
}

enum step_result torsh_step_to(struct stepper *s, struct step_frame *f, uint64_t *rule,
			       uintptr_t cfa, uintptr_t bp_slot)
{
	uintptr_t ip, bp = f->bp;

	if (!torsh_step_read(s, f->sp, cfa + (uintptr_t)torsh_unwind_rule_ip_where(*rule), &ip,
			     rule) ||
	    (*rule & RULE_RESTORES_BP && !torsh_step_read(s, f->sp, bp_slot, &bp, rule))) {
		*rule |= RULE_UNPROVABLE;
		return STEP_CUT_BAD;
	}
	ip = torsh_cpu_code_address(ip);
	if (!torsh_unwind_rule_can_be_ip(ip)) {
		*rule |= RULE_UNPROVABLE;
		return STEP_CUT_BAD;
	}
	*f = (struct step_frame){
		.sp = cfa, .tagged_ip = torsh_tagged_ip(ip, IP_TAG_CALL), .bp = bp};
	return ip ? STEP_NEXT : STEP_END_READ;
}
