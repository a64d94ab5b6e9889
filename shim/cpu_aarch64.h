/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Code that is specific to aarch64: system calls, the virtual counter, and the caller of a hook. */
#ifndef TORSH_SHIM_CPU_AARCH64_H
#define TORSH_SHIM_CPU_AARCH64_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>

static inline long torsh_cpu_syscall(long nr, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}

/*
 * The system call clone, for a child that runs call(argument) on the stack that ends at stack_end,
 * a multiple of 16, where call does not return. Returns the child's number, or -errno.
 */
static inline long torsh_cpu_clone(unsigned long flags, void *stack_end, void (*call)(void *),
				   void *argument)
{
	register long x8 __asm__("x8") = SYS_clone;
	register unsigned long x0 __asm__("x0") = flags;
	register void *x1 __asm__("x1") = stack_end;
	register void (*x9)(void *) __asm__("x9") = call;
	register void *x10 __asm__("x10") = argument;

	__asm__ volatile("svc 0\n\t"
			 "cbnz x0, 1f\n\t"
			 "mov x29, #0\n\t"
			 "mov x0, x10\n\t"
			 "blr x9\n\t"
			 "brk #0\n"
			 "1:"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x9), "r"(x10)
			 : "memory");
	return (long)x0;
}

/* Never called: the kernel allows it to events that request it on this CPU, and none does. */
static inline uint64_t torsh_cpu_counter(uint32_t index)
{
	(void)index;
	return 0;
}

static inline uint64_t torsh_cpu_ticks(void)
{
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
}

static inline uint64_t torsh_cpu_ticks_ordered(void)
{
	uint64_t ticks;

	__asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(ticks) : : "memory");
	return ticks;
}

/* Loads may be observed in any order. */
#define TORSH_CPU_LOADS_IN_ORDER 0

/*
 * Relocations (elf.h) with the address of a symbol: of a function that is called, of one that is
 * referenced, in data.
 */
#define TORSH_CPU_RELOCATION_SLOT R_AARCH64_JUMP_SLOT
#define TORSH_CPU_RELOCATION_DATA R_AARCH64_GLOB_DAT
#define TORSH_CPU_RELOCATION_WORD R_AARCH64_ABS64

static inline void torsh_cpu_pause(void)
{
	__asm__ volatile("yield");
}

/* A signal handler of the same thread may do the same in between. */
static inline void torsh_cpu_add(_Atomic uint64_t *at, uint64_t n)
{
	__atomic_fetch_add((uint64_t *)at, n, __ATOMIC_RELAXED);
}

/* Likewise. Returns whether the result is above 0. */
static inline bool torsh_cpu_take(int64_t *at, int64_t n)
{
	return __atomic_sub_fetch(at, n, __ATOMIC_RELAXED) > 0;
}

struct cpu_caller {
	uintptr_t ip, sp, bp;
};

/* Unknown: glibc before 2.32 keeps it in a struct that no header describes. */
static inline bool torsh_cpu_has_threads(void)
{
	return false;
}

/* The C library's per-thread data. */
static inline uintptr_t torsh_cpu_thread_pointer(void)
{
	uintptr_t pointer;

	__asm__("mrs %0, tpidr_el0" : "=r"(pointer));
	return pointer;
}

/*
 * A saved return address without the signature that pointer authentication put into its upper bits:
 * xpaclri, which does nothing on a CPU without it.
 */
static inline uintptr_t torsh_cpu_code_address(uintptr_t saved)
{
	register uintptr_t x30 __asm__("x30") = saved;

	__asm__("hint #7" : "+r"(x30));
	return x30;
}

/* Calls between objects are left as they are. */
#define TORSH_CPU_CALL_BYTES 4u
#define TORSH_CPU_JUMP_BYTES 4u
#define TORSH_CPU_STUB_BYTES 16u

static inline uintptr_t torsh_cpu_called(const uint8_t *call)
{
	(void)call;
	return 0;
}

static inline uintptr_t torsh_cpu_jumped(const uint8_t *function)
{
	(void)function;
	return 0;
}

static inline uintptr_t torsh_cpu_stub_place(const uint8_t *stub)
{
	(void)stub;
	return 0;
}

#endif
