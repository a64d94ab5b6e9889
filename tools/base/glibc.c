/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the tools need of the C library and every glibc from 2.28 has under another name only: the
 * linker leads calls of these here (--wrap in the Makefile). See shim/libc/glibc.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int __wrap_stat(const char *path, struct stat *status);
int __wrap_lstat(const char *path, struct stat *status);
int __wrap_fstat(int fd, struct stat *status);

/* Functions since 2.33; before, macros for others. */
int __wrap_stat(const char *path, struct stat *status)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, 0);
}

int __wrap_lstat(const char *path, struct stat *status)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}

int __wrap_fstat(int fd, struct stat *status)
{
	return (int)syscall(SYS_fstat, fd, status);
}

uint32_t __wrap_arc4random(void);
void __wrap_arc4random_buf(void *to, size_t n);

/* Of libevent where it was built with 2.36 or later. An array that is not filled is not random. */
void __wrap_arc4random_buf(void *to, size_t n)
{
	for (unsigned char *at = to; n;) {
		ssize_t n_got = getrandom(at, n, 0);

		if (n_got < 0 && errno == EINTR)
			continue;
		if (n_got <= 0)
			abort();
		at += n_got;
		n -= (size_t)n_got;
	}
}

uint32_t __wrap_arc4random(void)
{
	uint32_t number;

	__wrap_arc4random_buf(&number, sizeof(number));
	return number;
}

typedef void initialize(int argc, char **argv, char **envp);

extern initialize *__init_array_start[] __attribute__((visibility("hidden")));
extern initialize *__init_array_end[] __attribute__((visibility("hidden")));

int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, initialize *init,
		      void (*fini)(void), void (*rtld_fini)(void), void *stack_end);
int __wrap___libc_start_main(int (*main)(int, char **, char **), int argc, char **argv,
			     initialize *init, void (*fini)(void), void (*rtld_fini)(void),
			     void *stack_end);

static void call_constructors(int argc, char **argv, char **envp)
{
	for (initialize **call = __init_array_start; call < __init_array_end; call++)
		(*call)(argc, argv, envp);
}

/*
 * What a program begins with has no constructors' caller since 2.34: the C library does that
 * itself. An older one doesn't.
 */
int __wrap___libc_start_main(int (*main)(int, char **, char **), int argc, char **argv,
			     initialize *init, void (*fini)(void), void (*rtld_fini)(void),
			     void *stack_end)
{
	return __libc_start_main(main, argc, argv, init ? init : call_constructors, fini, rtld_fini,
				 stack_end);
}
