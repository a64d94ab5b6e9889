/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The registers of a running function, for an unwinder that starts in it. */
#ifndef TORSH_SHIM_REGISTERS_X86_64_H
#define TORSH_SHIM_REGISTERS_X86_64_H

#include <stdint.h>

/*
 * Store what a step out of the calling function needs: its callee-saved registers, rsp and rip, at
 * their DWARF numbers (an array of 17). All belong to one instruction, so that the function's
 * unwind information at that rip describes them.
 */
static inline __attribute__((always_inline)) void torsh_cpu_registers(uintptr_t *dwarf)
{
	__asm__ volatile("movq %%rbx, 3*8(%0)\n\t"
			 "movq %%rbp, 6*8(%0)\n\t"
			 "movq %%rsp, 7*8(%0)\n\t"
			 "movq %%r12, 12*8(%0)\n\t"
			 "movq %%r13, 13*8(%0)\n\t"
			 "movq %%r14, 14*8(%0)\n\t"
			 "movq %%r15, 15*8(%0)\n\t"
			 "leaq 0(%%rip), %%rax\n\t"
			 "movq %%rax, 16*8(%0)"
			 :
			 : "r"(dwarf)
			 : "rax", "memory");
}

#endif
