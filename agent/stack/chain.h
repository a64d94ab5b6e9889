/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Steps without call frame information on x86-64: code with a frame pointer, and the kernel's
 * signal frames.
 */
#ifndef TORSH_AGENT_STACK_CHAIN_H
#define TORSH_AGENT_STACK_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

#define CHAIN_FARTHEST (1u << 20)

/* Offset of uc_mcontext.gregs in a ucontext, and the indices in it that unwinding needs most. */
#define CHAIN_GREGS 40u
#define CHAIN_GREG_RBP (CHAIN_GREGS + 8 * 10u)
#define CHAIN_GREG_RSP (CHAIN_GREGS + 8 * 15u)
#define CHAIN_GREG_RIP (CHAIN_GREGS + 8 * 16u)
#define CHAIN_N_GREGS 17u

/* Whether bp can be the frame pointer of a function with this sp. It may still be invalid. */
static inline bool torsh_chain_is_plausible(uintptr_t sp, uintptr_t bp)
{
	return bp % 8 == 0 && bp >= sp && bp - sp < CHAIN_FARTHEST;
}

#endif
