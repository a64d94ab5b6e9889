/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The registers of a running function, for an unwinder that starts in it. */
#ifndef TORSH_SHIM_REGISTERS_AARCH64_H
#define TORSH_SHIM_REGISTERS_AARCH64_H

#include <stdint.h>

/*
 * Store what a step out of the calling function needs: its callee-saved registers, sp and pc, at
 * their DWARF numbers (an array of 33). All belong to one instruction, so that the function's
 * unwind information at that pc describes them.
 */
static inline __attribute__((always_inline)) void torsh_cpu_registers(uintptr_t *dwarf)
{
	__asm__ volatile("stp x19, x20, [%0, #19*8]\n\t"
			 "stp x21, x22, [%0, #21*8]\n\t"
			 "stp x23, x24, [%0, #23*8]\n\t"
			 "stp x25, x26, [%0, #25*8]\n\t"
			 "stp x27, x28, [%0, #27*8]\n\t"
			 "stp x29, x30, [%0, #29*8]\n\t"
			 "mov x9, sp\n\t"
			 "adr x10, .\n\t"
			 "stp x9, x10, [%0, #31*8]"
			 :
			 : "r"(dwarf)
			 : "x9", "x10", "memory");
}

#endif
