/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * System calls made directly, without any interposable symbol: the agent interposes mmap(), fork()
 * and their relatives, and must not call itself. Results are the kernel's: a value, or -errno; the
 * target's errno is never modified.
 */
#ifndef TORSH_SHIM_SYS_H
#define TORSH_SHIM_SYS_H

#include <fcntl.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#if defined(__x86_64__)
#include "shim/cpu_x86_64.h"
#elif defined(__aarch64__)
#include "shim/cpu_aarch64.h"
#else
#error "the agent supports only x86-64 and aarch64"
#endif

/* From Linux 5.9, with the same number on every CPU; older C libraries don't define it. */
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

#define TORSH_SYS(nr, a, b, c, d, e, f) \
	torsh_cpu_syscall(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

static inline int torsh_sys_failed(long result)
{
	return result < 0 && result > -4096;
}

static inline void *torsh_sys_mmap(void *at, size_t size_bytes, int prot, int flags, int fd,
				   int64_t offset)
{
	return (void *)TORSH_SYS(SYS_mmap, at, size_bytes, prot, flags, fd, offset);
}

/*
 * Mark pages as the agent's: they are in no dump of the program. By that and by MAP_NORESERVE the
 * writer, which looks for the program's pointers, knows them.
 */
static inline void torsh_sys_mark(void *pages, size_t size_bytes)
{
	TORSH_SYS(SYS_madvise, pages, size_bytes, MADV_DONTDUMP, 0, 0, 0);
}

/* Anonymous private pages, zeroed, populated on access. NULL if the kernel refuses. */
static inline void *torsh_sys_pages(size_t size_bytes)
{
	void *p = torsh_sys_mmap(NULL, size_bytes, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (torsh_sys_failed((long)p))
		return NULL;
	torsh_sys_mark(p, size_bytes);
	return p;
}

/* From Linux 5.14; older C libraries don't define it, older kernels answer EINVAL. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Populate pages that will be written soon: reading one first, then writing it, faults twice. */
static inline void torsh_sys_populate(void *pages, size_t size_bytes)
{
	TORSH_SYS(SYS_madvise, pages, size_bytes, MADV_POPULATE_WRITE, 0, 0, 0);
}

/* torsh_sys_pages, zeroed in a forked child: for data that only the parent may use. */
static inline void *torsh_sys_own_pages(size_t size_bytes)
{
	void *p = torsh_sys_pages(size_bytes);

	if (p)
		TORSH_SYS(SYS_madvise, p, size_bytes, MADV_WIPEONFORK, 0, 0, 0);
	return p;
}

static inline long torsh_sys_munmap(void *at, size_t size_bytes)
{
	return TORSH_SYS(SYS_munmap, at, size_bytes, 0, 0, 0, 0);
}

/* The pages at *place, which the first caller makes as torsh_sys_own_pages. Any thread. */
static inline void *torsh_sys_own_once(void *_Atomic *place, size_t size_bytes)
{
	void *made, *known = atomic_load_explicit(place, memory_order_acquire);

	if (known)
		return known;
	made = torsh_sys_own_pages(size_bytes);
	if (!made || atomic_compare_exchange_strong(place, &known, made))
		return made;
	torsh_sys_munmap(made, size_bytes);
	return known;
}

/* Some CPUs lack the old forms of these two. */
static inline long torsh_sys_readlink(const char *path, char *out, size_t size_bytes)
{
	return TORSH_SYS(SYS_readlinkat, AT_FDCWD, path, out, size_bytes, 0, 0);
}

static inline long torsh_sys_access(const char *path, int mode)
{
	return TORSH_SYS(SYS_faccessat, AT_FDCWD, path, mode, 0, 0, 0);
}

struct stat;

static inline long torsh_sys_fstat(int fd, struct stat *status)
{
	return TORSH_SYS(SYS_fstat, fd, status, 0, 0, 0, 0);
}

static inline long torsh_sys_lstat(const char *path, struct stat *status)
{
	return TORSH_SYS(SYS_newfstatat, AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW, 0, 0);
}

static inline int torsh_sys_gettid(void)
{
	return (int)TORSH_SYS(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

static inline int torsh_sys_getpid(void)
{
	return (int)TORSH_SYS(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

/*
 * Wait while *word == expected, at most timeout_ns; 0, -EAGAIN, -EINTR or -ETIMEDOUT. Works across
 * processes.
 */
static inline long torsh_sys_futex_wait(const void *word, uint32_t expected, uint64_t timeout_ns)
{
	struct timespec t = {
		.tv_sec = (time_t)(timeout_ns / 1000000000u),
		.tv_nsec = (long)(timeout_ns % 1000000000u),
	};

	return TORSH_SYS(SYS_futex, word, FUTEX_WAIT, expected, &t, 0, 0);
}

static inline long torsh_sys_futex_wake(const void *word, int n_waiters)
{
	return TORSH_SYS(SYS_futex, word, FUTEX_WAKE, n_waiters, 0, 0, 0);
}

/*
 * Whether the four aligned bytes at address are mapped and have this value. The kernel reads them,
 * so that another thread may unmap them at any time. Returns 0, -EAGAIN if they differ, -EFAULT if
 * they can't be read; anything else is a filter's result. The futex call moves no waiters, but the
 * kernel still compares first.
 */
static inline long torsh_sys_compare(uintptr_t address, uint32_t value)
{
	static const uint32_t nobody_waits_here;

	return TORSH_SYS(SYS_futex, address, FUTEX_CMP_REQUEUE | FUTEX_PRIVATE_FLAG, 0, 0,
			 &nobody_waits_here, value);
}

/* Whether this word is writable: the kernel adds 0 to it for a futex. */
static inline bool torsh_sys_is_writable(const void *word)
{
	uint32_t nobodys = 0;

	return TORSH_SYS(SYS_futex, &nobodys, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0,
			 (uintptr_t)word & ~(uintptr_t)3,
			 FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0)) >= 0;
}

/*
 * Filters of system calls end a process for calls that they don't list: while the program runs the
 * kernel is only queried by futex calls, which every program with threads may make. None of these
 * waits.
 *
 * Whether no thread has this tid any more: the kernel looks up the owner of a lock. A zombie counts
 * as gone.
 */
static inline bool torsh_sys_is_gone(uint32_t tid)
{
	uint32_t lock = tid;

	return TORSH_SYS(SYS_futex, &lock, FUTEX_TRYLOCK_PI_PRIVATE, 0, 0, 0, 0) == -3 /* ESRCH */;
}

/*
 * Whether the kernel's tid of the calling thread is this one: only the owner of a lock may release
 * it.
 */
static inline bool torsh_sys_is_self(uint32_t tid)
{
	uint32_t lock = tid;
	long result = TORSH_SYS(SYS_futex, &lock, FUTEX_UNLOCK_PI_PRIVATE, 0, 0, 0, 0);

	return result == -38 /* ENOSYS */ ? torsh_sys_gettid() == (int)tid : result == 0;
}

#endif
