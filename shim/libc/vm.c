/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The calls that change the address space, as programs call them. The C library's own mappings
 * (thread stacks, malloc arenas) don't use them.
 */
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim/hooks.h"
#include "shim/libc/next.h"

static void *map(void *at, size_t n, int prot, int flags, int fd, off_t offset, const void *frame)
{
	void *p = torsh_next.mmap(at, n, prot, flags, fd, offset);

	if (p != MAP_FAILED)
		torsh_vm_mapped(p, n, prot, flags, fd, offset, frame);
	return p;
}

EXPORT void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
	return map(at, n, prot, flags, fd, offset, HOOK_FRAME);
}

/* off_t has 64 bits on every supported machine, so that the two are the same. */
EXPORT void *mmap64(void *at, size_t n, int prot, int flags, int fd, off64_t offset)
{
	return map(at, n, prot, flags, fd, offset, HOOK_FRAME);
}

EXPORT int munmap(void *at, size_t n)
{
	return torsh_vm_unmap(at, n);
}

EXPORT void *mremap(void *at, size_t old, size_t n, int flags, ...)
{
	void *wanted = NULL;
	va_list rest;

	if (flags & MREMAP_FIXED) {
		va_start(rest, flags);
		wanted = va_arg(rest, void *);
		va_end(rest);
	}
	return torsh_vm_remap(at, old, n, flags, wanted, HOOK_FRAME);
}

EXPORT int brk(void *to)
{
	return torsh_vm_break(to, HOOK_FRAME);
}

EXPORT void *sbrk(intptr_t by)
{
	return torsh_vm_move_break(by, HOOK_FRAME);
}

EXPORT void *shmat(int id, const void *at, int flags)
{
	void *p = torsh_next.shmat(id, at, flags);

	if (p != MAP_FAILED)
		torsh_vm_attached(p, id, HOOK_FRAME);
	return p;
}

EXPORT int shmdt(const void *at)
{
	return torsh_vm_detach(at);
}

EXPORT int madvise(void *at, size_t n, int advice)
{
	int result = torsh_next.madvise(at, n, advice);

	if (!result)
		torsh_vm_advised(at, n, advice);
	return result;
}
