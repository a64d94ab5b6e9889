/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A second opinion on stacks for debugging: libunwind, opened privately so that its _Unwind_* never
 * take over from libgcc's. It may lock, and is never used unless asked for.
 */
#ifndef TORSH_AGENT_STACK_REFERENCE_UNWINDER_H
#define TORSH_AGENT_STACK_REFERENCE_UNWINDER_H

#include <stdbool.h>
#include <stdint.h>

#define REFERENCE_MAX_FRAMES 2048
#define REFERENCE_DIFFERENCE_FRAMES 256
#define REFERENCE_BUSY UINT32_MAX

/* For a debugger: the first pair that differed, innermost first. */
struct reference_difference {
	uint32_t n_ours, n_reference;
	uintptr_t ours[REFERENCE_DIFFERENCE_FRAMES], reference[REFERENCE_DIFFERENCE_FRAMES];
};

extern struct reference_difference torsh_reference_first_difference;

/* Not from a hook. Returns 0, or -ENOENT when libunwind isn't there or isn't as expected. */
int torsh_reference_open(void);

/*
 * The addresses of the frames from the one that will run with sp outwards, into ips[]; how many, at
 * most REFERENCE_MAX_FRAMES. Called from a frame further in on the same stack. REFERENCE_BUSY
 * when this thread is in a walk already: torsh_reference_compare takes that.
 */
uint32_t torsh_reference_walk(uintptr_t sp, uintptr_t *ips);

/*
 * Count one comparison; the stacks are innermost first. is_cut: ours goes only as far as it goes.
 */
void torsh_reference_compare(const uintptr_t *ours, uint32_t n_ours, const uintptr_t *reference,
			     uint32_t n_reference, bool is_cut);

#endif
