/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Code that is specific to x86-64: system calls, the time stamp counter, and the caller of a hook.
 */
#ifndef TORSH_SHIM_CPU_X86_64_H
#define TORSH_SHIM_CPU_X86_64_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

static inline long torsh_cpu_syscall(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

/*
 * The system call clone, for a child that runs call(argument) on the stack that ends at stack_end,
 * a multiple of 16, where call does not return. Returns the child's number, or -errno.
 */
static inline long torsh_cpu_clone(unsigned long flags, void *stack_end, void (*call)(void *),
				   void *argument)
{
	register void (*r12)(void *) __asm__("r12") = call;
	register void *r13 __asm__("r13") = argument;
	long result;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "mov %%r13, %%rdi\n\t"
			 "call *%%r12\n\t"
			 "ud2\n"
			 "1:"
			 : "=a"(result)
			 : "a"(SYS_clone), "D"(flags), "S"(stack_end), "r"(r12), "r"(r13)
			 : "rcx", "r11", "memory");
	return result;
}

/* The time stamp counter, unordered: an earlier load may not have completed. */
static inline uint64_t torsh_cpu_ticks(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

/*
 * The counter, read after every earlier load has completed: this thread's event can't get a stamp
 * below that of another thread's event if it saw the effect of that.
 */
static inline uint64_t torsh_cpu_ticks_ordered(void)
{
	uint32_t low, high;

	__asm__ volatile("lfence\n\trdtsc" : "=a"(low), "=d"(high) : : "memory");
	return (uint64_t)high << 32 | low;
}

/* A counter of the processor's, which the kernel has allowed. */
static inline uint64_t torsh_cpu_counter(uint32_t index)
{
	uint32_t low, high;

	__asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(index));
	return (uint64_t)high << 32 | low;
}

/* Loads are observed in program order. */
#define TORSH_CPU_LOADS_IN_ORDER 1

/*
 * Relocations (elf.h) with the address of a symbol: of a function that is called, of one that is
 * referenced, in data.
 */
#define TORSH_CPU_RELOCATION_SLOT R_X86_64_JUMP_SLOT
#define TORSH_CPU_RELOCATION_DATA R_X86_64_GLOB_DAT
#define TORSH_CPU_RELOCATION_WORD R_X86_64_64

static inline void torsh_cpu_pause(void)
{
	__asm__ volatile("pause");
}

/* One instruction: a signal handler of the same thread may do the same in between. */
static inline void torsh_cpu_add(_Atomic uint64_t *at, uint64_t n)
{
	__asm__ volatile("addq %1, %0" : "+m"(*at) : "er"(n) : "cc");
}

/* Likewise. Returns whether the result is above 0. */
static inline bool torsh_cpu_take(int64_t *at, int64_t n)
{
	bool is_positive;

	__asm__ volatile("subq %2, %0" : "+m"(*at), "=@ccg"(is_positive) : "er"(n));
	return is_positive;
}

/* The C library's per-thread data; GCC has a builtin for it since 11. */
static inline uintptr_t torsh_cpu_thread_pointer(void)
{
	uintptr_t pointer;

	__asm__("mov %%fs:0, %0" : "=r"(pointer));
	return pointer;
}

/*
 * Whether this process has had a second thread, from the word that fork of glibc before 2.32 reads:
 * multiple_threads in tcbhead_t (sysdeps/x86_64/nptl/tls.h).
 */
static inline bool torsh_cpu_has_threads(void)
{
	int multiple_threads;

	__asm__ volatile("mov %%fs:0x18, %0" : "=r"(multiple_threads));
	return multiple_threads;
}

/* A return address as code has it: this CPU saves it plainly. */
static inline uintptr_t torsh_cpu_code_address(uintptr_t saved)
{
	return saved;
}

/* Registers of the code that called a hook, as they will be when the hook has returned. */
struct cpu_caller {
	uintptr_t ip, sp, bp;
};

/*
 * frame is __builtin_frame_address(0) of a hook, which is compiled with a frame pointer: it points
 * to the caller's rbp, followed by the return address.
 */
static inline struct cpu_caller torsh_cpu_caller(const void *frame)
{
	const uintptr_t *f = frame;

	return (struct cpu_caller){.ip = f[1], .sp = (uintptr_t)(f + 2), .bp = f[0]};
}

/*
 * Calls between objects: a direct call of a stub, or a function that only jumps to one; the stub
 * jumps to where a place says. All return 0 for other code, and read no more than these many bytes
 * of it.
 */
#define TORSH_CPU_CALL_BYTES 5u
#define TORSH_CPU_JUMP_BYTES 9u
#define TORSH_CPU_STUB_BYTES 11u

/* What the instruction calls. */
static inline uintptr_t torsh_cpu_called(const uint8_t *call)
{
	int32_t distance;

	if (call[0] != 0xe8)
		return 0;
	memcpy(&distance, call + 1, sizeof(distance));
	return (uintptr_t)(call + TORSH_CPU_CALL_BYTES) + (uintptr_t)(intptr_t)distance;
}

static inline const uint8_t *torsh_cpu_skip_target(const uint8_t *code)
{
	static const uint8_t branch_target[] = {0xf3, 0x0f, 0x1e, 0xfa};

	return memcmp(code, branch_target, sizeof(branch_target)) ? code
								  : code + sizeof(branch_target);
}

/* Where the function jumps to: [endbr64] jmp distance. */
static inline uintptr_t torsh_cpu_jumped(const uint8_t *function)
{
	const uint8_t *jump = torsh_cpu_skip_target(function);
	int32_t distance;

	if (jump[0] != 0xe9)
		return 0;
	memcpy(&distance, jump + 1, sizeof(distance));
	return (uintptr_t)(jump + 5) + (uintptr_t)(intptr_t)distance;
}

/* The place by which the stub finds its target: [endbr64], [bnd] jmp *distance(%rip). */
static inline uintptr_t torsh_cpu_stub_place(const uint8_t *stub)
{
	int32_t distance;

	stub = torsh_cpu_skip_target(stub);
	stub += *stub == 0xf2;
	if (stub[0] != 0xff || stub[1] != 0x25)
		return 0;
	memcpy(&distance, stub + 2, sizeof(distance));
	return (uintptr_t)(stub + 6) + (uintptr_t)(intptr_t)distance;
}

#endif
