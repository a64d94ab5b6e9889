/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Code that is specific to aarch64: system calls, the virtual counter, and the caller of a hook. */
#ifndef TORSH_SHIM_CPU_AARCH64_H
#define TORSH_SHIM_CPU_AARCH64_H

#include <stdbool.h>
#include <stdint.h>

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

/*
 * frame is __builtin_frame_address(0) of a hook: the frame record {x29, x30} of the caller. The
 * caller's sp is not in the record; this CPU's unwinder finds it itself.
 */
static inline struct cpu_caller torsh_cpu_caller(const void *frame)
{
	const uintptr_t *f = frame;

	return (struct cpu_caller){.ip = f[1], .sp = 0, .bp = f[0]};
}

#endif
