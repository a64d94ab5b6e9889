/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Replacements for functions of the C library that glibc 2.28 has under another name only, or not
 * at all: the linker redirects calls here (--wrap in the Makefile). The agent's counterpart is
 * shim/libc/glibc.h.
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

/* Functions since glibc 2.33; macros for other functions before. */
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

/*
 * Called by a libevent that was built with glibc 2.36 or later, which ignores errors: an array
 * that is not filled would not be random.
 */
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
 * Since glibc 2.34 the C library calls a program's constructors itself, and start files no longer
 * contain the code for it. An older library relies on them.
 */
int __wrap___libc_start_main(int (*main)(int, char **, char **), int argc, char **argv,
			     initialize *init, void (*fini)(void), void (*rtld_fini)(void),
			     void *stack_end)
{
	return __libc_start_main(main, argc, argv, init ? init : call_constructors, fini, rtld_fini,
				 stack_end);
}
