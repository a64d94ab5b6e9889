/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * LeakSanitizer's interface (sanitizer/lsan_interface.h), for programs that call it if it is
 * present: their references are weak and bind here unless the program was built with the sanitizer.
 * Blocks that they declare not to be leaks are no leaks in reports.
 */
#include <stddef.h>

#include "shim/hooks.h"

static _Thread_local int n_disabled;

EXPORT void __lsan_ignore_object(const void *p);
EXPORT void __lsan_disable(void);
EXPORT void __lsan_enable(void);
EXPORT void __lsan_register_root_region(const void *p, size_t n);
EXPORT void __lsan_unregister_root_region(const void *p, size_t n);
EXPORT void __lsan_do_leak_check(void);
EXPORT int __lsan_do_recoverable_leak_check(void);

__attribute__((noinline)) void __lsan_ignore_object(const void *p)
{
	torsh_heap_ignored((void *)p);
	/* Not a tail call: reports identify the block by this function's name. */
	__asm__ volatile("");
}

void __lsan_disable(void)
{
	n_disabled++;
	torsh_heap_exceptions |= HEAP_LSAN_DISABLES;
}

void __lsan_enable(void)
{
	if (n_disabled > 0)
		n_disabled--;
}

/* No memory is searched for pointers; leaks are determined when the program has ended. */
void __lsan_register_root_region(const void *p, size_t n)
{
	(void)p;
	(void)n;
}

void __lsan_unregister_root_region(const void *p, size_t n)
{
	(void)p;
	(void)n;
}

void __lsan_do_leak_check(void)
{
}

int __lsan_do_recoverable_leak_check(void)
{
	return 0;
}

void torsh_lsan_allocated(void *p)
{
	if (n_disabled > 0 && p)
		__lsan_ignore_object(p);
}
