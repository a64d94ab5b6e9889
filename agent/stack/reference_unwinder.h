/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The reference unwinder, which checks captured stacks in tests: libunwind, opened privately so
 * that its _Unwind_* never replace libgcc's. It may lock, and runs only under
 * TORSH_PROFILER_CHECK_STACKS.
 */
#ifndef TORSH_AGENT_STACK_REFERENCE_UNWINDER_H
#define TORSH_AGENT_STACK_REFERENCE_UNWINDER_H

#include <stdbool.h>
#include <stdint.h>

#define REFERENCE_MAX_FRAMES 2048
#define REFERENCE_DIFFERENCE_FRAMES 256
#define REFERENCE_BUSY UINT32_MAX

/* The first pair of stacks that differed, innermost first; for debuggers. */
struct reference_difference {
	uint32_t n_ours, n_reference;
	uintptr_t ours[REFERENCE_DIFFERENCE_FRAMES], reference[REFERENCE_DIFFERENCE_FRAMES];
};

extern struct reference_difference torsh_reference_first_difference;

/*
 * Open libunwind; not from a hook. Returns 0, or -ENOENT if the library is missing or incompatible.
 */
int torsh_reference_open(void);

/*
 * Write the addresses of the frames to ips[], from the one that will run with sp outwards. Returns
 * their number, at most REFERENCE_MAX_FRAMES, or REFERENCE_BUSY, which torsh_reference_compare
 * accepts, if this thread is in a walk already. Called from a frame further in on the same stack.
 */
uint32_t torsh_reference_walk(uintptr_t sp, uintptr_t *ips);

/*
 * Compare two stacks, innermost first, and count the result. is_cut: the agent's stack ends early
 * by design.
 */
void torsh_reference_compare(const uintptr_t *ours, uint32_t n_ours, const uintptr_t *reference,
			     uint32_t n_reference, bool is_cut);

#endif
