/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Replacements of C library functions for the private jemalloc: it must not obey the program's
 * MALLOC_CONF or /etc/malloc.conf, start threads, end the process, or have its own mappings
 * recorded.
 *
 * jemalloc takes all of its locks around a fork. That is skipped if it doesn't serve the program. A
 * signal handler may fork, too: the fork or allocation that it interrupted holds some of the locks
 * and can't release them before the handler returns, so these are not waited for.
 */
#include "shim/allocators/jemalloc.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "shim/libc/next.h"
#include "shim/libc/thread.h"
#include "shim/loader/symbol.h"
#include "shim/sys.h"

#ifndef TORSH_WITHOUT_JEMALLOC

#define HIDDEN __attribute__((visibility("hidden")))

HIDDEN void *torsh_je_malloc(size_t n);
HIDDEN void *torsh_je_calloc(size_t n, size_t size);
HIDDEN void *torsh_je_realloc(void *p, size_t n);
HIDDEN void torsh_je_free(void *p);
HIDDEN int torsh_je_posix_memalign(void **out, size_t alignment, size_t n);
HIDDEN void *torsh_je_aligned_alloc(size_t alignment, size_t n);
HIDDEN void *torsh_je_memalign(size_t alignment, size_t n);
HIDDEN void *torsh_je_valloc(size_t n);
HIDDEN size_t torsh_je_malloc_usable_size(void *p);

HIDDEN char *torsh_je_getenv(const char *name);
HIDDEN char *torsh_je_secure_getenv(const char *name);
HIDDEN ssize_t torsh_je_readlink(const char *path, char *buffer, size_t n_bytes);
HIDDEN void torsh_je_abort(void) __attribute__((noreturn));
HIDDEN int torsh_je_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
				   void *(*run)(void *), void *argument);

HIDDEN int torsh_je_pthread_atfork(void (*prepare)(void), void (*parent)(void),
				   void (*child)(void));
HIDDEN int torsh_je_pthread_mutex_lock(pthread_mutex_t *mutex);
HIDDEN int torsh_je_pthread_mutex_trylock(pthread_mutex_t *mutex);
HIDDEN int torsh_je_pthread_mutex_unlock(pthread_mutex_t *mutex);

HIDDEN void *torsh_je_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset);
HIDDEN int torsh_je_munmap(void *at, size_t n);
HIDDEN int torsh_je_madvise(void *at, size_t n, int advice);

static int as_errno(long result)
{
	if (!torsh_sys_failed(result))
		return 0;
	errno = (int)-result;
	return -1;
}

void *torsh_je_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
	void *p = torsh_sys_mmap(at, n, prot, flags, fd, offset);

	return as_errno((long)p) ? MAP_FAILED : p;
}

int torsh_je_munmap(void *at, size_t n)
{
	return as_errno(torsh_sys_munmap(at, n));
}

int torsh_je_madvise(void *at, size_t n, int advice)
{
	return as_errno(TORSH_SYS(SYS_madvise, at, n, advice, 0, 0, 0));
}

char *torsh_je_getenv(const char *name)
{
	(void)name;
	return NULL;
}

char *torsh_je_secure_getenv(const char *name)
{
	(void)name;
	return NULL;
}

ssize_t torsh_je_readlink(const char *path, char *buffer, size_t n_bytes)
{
	(void)path;
	(void)buffer;
	(void)n_bytes;
	errno = ENOENT;
	return -1;
}

/* jemalloc found its heap corrupted by the program: ends it as glibc's malloc does. */
void torsh_je_abort(void)
{
	for (;;)
		__builtin_trap();
}

/* Background threads stay off. */
int torsh_je_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
			    void *(*run)(void *), void *argument)
{
	(void)thread;
	(void)attributes;
	(void)run;
	(void)argument;
	return EAGAIN;
}

/* ---- fork ------------------------------------------------------------------------------------ */

#define N_HELD 16 /* locks that an allocation may hold: few */

static struct {
	/* jemalloc's; NULL before it has started */
	void (*prepare)(void), (*parent)(void), (*child)(void);
} handlers;
static bool is_serving;

/*
 * Forks of this thread: one, and those of signal handlers that interrupted it; and the locks held
 * before the first.
 */
static _Thread_local uint32_t n_forks, n_held;
static _Thread_local pthread_mutex_t *held[N_HELD];

/* The C library's lock of the list of streams. */
extern void _IO_list_lock(void) __attribute__((weak));
extern void _IO_list_unlock(void) __attribute__((weak));

static _Thread_local bool has_streams;

/*
 * The C library's variable that is not 0 while there is one thread, since glibc 2.32; NULL on older
 * ones.
 */
static const char *is_single;

/* A program that refers to it has it in its own data, which takes precedence. */
static void find_is_single(bool is_there)
{
	if (is_there)
		is_single = torsh_symbol(RTLD_DEFAULT, "__libc_single_threaded");
}

/* Whether fork takes the lock of the list of streams and resets it in the child. */
static int fork_takes_streams(void)
{
	return is_single ? !*is_single : torsh_cpu_has_threads();
}

/*
 * A thread that holds the streams' lock may allocate. So fork takes that lock before the locks of
 * its malloc, and here it is taken before jemalloc's. With one thread no other can hold it; with
 * several fork resets it in the child.
 */
static void take_streams(void)
{
	if (!_IO_list_lock || !_IO_list_unlock || !fork_takes_streams())
		return;
	_IO_list_lock();
	has_streams = true;
}

static void prepare_fork(void)
{
	if (n_forks++ == 0) {
		take_streams();
		handlers.prepare();
	}
}

static void finish_fork(void (*handler)(void))
{
	if (n_forks > 1) {
		n_forks--;
		return;
	}
	handler();
	n_held = 0;
	n_forks = 0;
}

static void finish_in_parent(void)
{
	bool is_outermost = n_forks == 1;

	finish_fork(handlers.parent);
	if (!is_outermost || !has_streams)
		return;
	has_streams = false;
	_IO_list_unlock();
}

static void finish_in_child(void)
{
	if (n_forks == 1)
		has_streams = false;
	finish_fork(handlers.child);
}

static int register_handlers(void)
{
	return is_serving && handlers.prepare
		       ? pthread_atfork(prepare_fork, finish_in_parent, finish_in_child)
		       : 0;
}

int torsh_je_pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
	handlers.prepare = prepare;
	handlers.parent = parent;
	handlers.child = child;
	return register_handlers();
}

/*
 * The agent's own locks, in words that pthread_mutex_init sets to 0: the owner's number, and a flag
 * for possible waiters. The C library's lock functions take a lock before they store its owner: a
 * signal handler in between could not identify it.
 */
#define SOMEBODY_WAITS 0x80000000u

static _Atomic uint32_t *word_of(pthread_mutex_t *mutex)
{
	return (_Atomic uint32_t *)&mutex->__data.__lock;
}

/* Acquire pairs with the release in torsh_je_pthread_mutex_unlock. */
static int take(_Atomic uint32_t *word, uint32_t owner)
{
	uint32_t free = 0;

	return atomic_compare_exchange_strong_explicit(word, &free, owner, memory_order_acquire,
						       memory_order_relaxed);
}

int torsh_je_pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	return take(word_of(mutex), (uint32_t)torsh_thread_tid()) ? 0 : EBUSY;
}

int torsh_je_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	_Atomic uint32_t *word = word_of(mutex);
	uint32_t self = (uint32_t)torsh_thread_tid(),
		 now = atomic_load_explicit(word, memory_order_relaxed);

	if (n_forks && (now & ~SOMEBODY_WAITS) == self && n_held < N_HELD) {
		held[n_held++] = mutex;
		return 0;
	}
	if (take(word, self))
		return 0;
	/* After waiting, other waiters can't be excluded. */
	while (!take(word, self | SOMEBODY_WAITS)) {
		now = atomic_load_explicit(word, memory_order_relaxed);
		if (now && (now & SOMEBODY_WAITS ||
			    atomic_compare_exchange_strong(word, &now, now | SOMEBODY_WAITS)))
			TORSH_SYS(SYS_futex, word, FUTEX_WAIT_PRIVATE, now | SOMEBODY_WAITS, NULL,
				  0, 0);
	}
	return 0;
}

int torsh_je_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	_Atomic uint32_t *word = word_of(mutex);

	for (uint32_t i = 0; n_forks && i < n_held; i++)
		if (held[i] == mutex)
			return 0;
	if (atomic_exchange_explicit(word, 0, memory_order_release) & SOMEBODY_WAITS)
		TORSH_SYS(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
	return 0;
}

/*
 * Properties of the C library's malloc that programs may expect and jemalloc lacks: the smallest
 * blocks are aligned to 16 bytes, too; memalign accepts any alignment and rounds it up; a failure
 * sets errno.
 */
#define SMALLEST 16u

static void *or_no_memory(void *p)
{
	if (!p)
		errno = ENOMEM;
	return p;
}

static void *serve_malloc(size_t n)
{
	return torsh_je_malloc(n < SMALLEST ? SMALLEST : n);
}

static void *serve_calloc(size_t n, size_t size)
{
	size_t total;

	if (!__builtin_mul_overflow(n, size, &total) && total < SMALLEST)
		return torsh_je_calloc(1, SMALLEST);
	return torsh_je_calloc(n, size);
}

static void *serve_realloc(void *p, size_t n)
{
	if (n == 0)
		return torsh_je_realloc(p, 0);
	return or_no_memory(torsh_je_realloc(p, n < SMALLEST ? SMALLEST : n));
}

static void *serve_memalign(size_t alignment, size_t n)
{
	size_t rounded = SMALLEST;

	if (alignment > SIZE_MAX / 2 + 1) {
		errno = EINVAL;
		return NULL;
	}
	while (rounded < alignment)
		rounded *= 2;
	return or_no_memory(torsh_je_memalign(rounded, n));
}

static void *serve_valloc(size_t n)
{
	return or_no_memory(torsh_je_valloc(n));
}

static void *serve_pvalloc(size_t n)
{
	size_t rounded = (n + 4095) & ~(size_t)4095;

	return or_no_memory(torsh_je_memalign(4096, rounded < n ? n : rounded ? rounded : 4096));
}

int torsh_jemalloc_serve(struct torsh_next *next, bool has_single_threaded)
{
	next->malloc = serve_malloc;
	next->calloc = serve_calloc;
	next->realloc = serve_realloc;
	next->free = torsh_je_free;
	next->posix_memalign = torsh_je_posix_memalign;
	next->aligned_alloc = torsh_je_aligned_alloc;
	next->memalign = serve_memalign;
	next->valloc = serve_valloc;
	next->pvalloc = serve_pvalloc;
	next->malloc_usable_size = torsh_je_malloc_usable_size;
	is_serving = true;
	find_is_single(has_single_threaded);
	register_handlers();
	return 1;
}

#ifdef TORSH_JEMALLOC_MAP

#define PAGE_BYTES UINT64_C(4096)

/* The renamed root of jemalloc's map of all memory. */
extern HIDDEN char TORSH_JEMALLOC_MAP[];

/*
 * The kernel maps nothing so close below a mapping that may grow down, unless it was booted with
 * another gap.
 */
#define GAP_BYTES (UINT64_C(256) * PAGE_BYTES)

static uintptr_t map_nothing(uintptr_t at, size_t n, int flags)
{
	return (uintptr_t)torsh_sys_mmap((void *)at, n, PROT_NONE,
					 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1,
					 0);
}

/*
 * Like map_nothing; unmaps what the kernel placed elsewhere. Returns whether it is mapped at the
 * place.
 */
static bool is_mapped(uintptr_t at, size_t n, int flags)
{
	uintptr_t place = map_nothing(at, n, flags);

	if (place != at && !torsh_sys_failed((long)place))
		torsh_sys_munmap((void *)place, n);
	return place == at;
}

/*
 * Unmap from low to a page below end, which keeps other mappings out. If that fails, map all of it
 * again.
 */
static void leave_gap(uintptr_t low, uintptr_t end)
{
	uintptr_t guard = end - PAGE_BYTES;

	if (torsh_sys_failed((long)map_nothing(guard, PAGE_BYTES, MAP_FIXED | MAP_GROWSDOWN)) ||
	    low == guard)
		return;
	torsh_sys_munmap((void *)low, guard - low);
	if (is_mapped(low, PAGE_BYTES, 0) && low + PAGE_BYTES < guard)
		is_mapped(low + PAGE_BYTES, guard - low - PAGE_BYTES, MAP_FIXED_NOREPLACE);
}

/*
 * Keep the addresses reserved: another mapping there would count as part of this library. They are
 * not mapped, because RLIMIT_MEMLOCK and RLIMIT_AS count mappings, whether or not they are
 * resident.
 */
void torsh_jemalloc_leave(void)
{
	uintptr_t start = ((uintptr_t)TORSH_JEMALLOC_MAP + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
	uintptr_t end = ((uintptr_t)TORSH_JEMALLOC_MAP + TORSH_JEMALLOC_MAP_BYTES) &
			~(PAGE_BYTES - 1),
		  low;

	for (; !is_serving && start < end; end = low) {
		low = end - start > GAP_BYTES + PAGE_BYTES ? end - GAP_BYTES - PAGE_BYTES : start;
		leave_gap(low, end);
	}
}

#else

void torsh_jemalloc_leave(void)
{
}

#endif

#else

void torsh_jemalloc_leave(void)
{
}

int torsh_jemalloc_serve(struct torsh_next *next, bool has_single_threaded)
{
	(void)next;
	(void)has_single_threaded;
	return 0;
}

#endif
