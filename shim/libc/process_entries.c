/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The calls by which a process forks, becomes another program or ends. Children get the agent's
 * environment, even if the caller removed it.
 *
 * After vfork these run in a child that shares its parent's memory: everything they need is on the
 * stack, and the collectors ignore their reports.
 */
#include <alloca.h>
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "shim/allocators/allocator_calls.h"
#include "shim/allocators/operators_new.h"
#include "shim/hooks.h"
#include "shim/libc/next.h"
#include "shim/loader/rebinding.h"
#include "shim/loader/unloading.h"
#include "shim/ranges/ranges.h"

EXPORT pid_t fork(void)
{
	pid_t child;

	torsh_process_forking();
	child = torsh_next.fork();
	if (child > 0)
		torsh_process_forked(child);
	else if (!child)
		torsh_process_created();
	return child;
}

/*
 * The environment of a child by the plan; the array is on the caller's stack if the plan has none.
 */
#define CHILD_ENVIRONMENT(plan)                                                                \
	({                                                                                     \
		size_t n_slots_ = torsh_process_environment_slots(plan);                       \
		char **slots_ = n_slots_ && !(plan)->slots ? alloca(n_slots_ * sizeof(char *)) \
							   : (plan)->slots;                    \
		n_slots_ ? torsh_process_environment(plan, slots_) : (plan)->envp;             \
	})

/* Call an exec function between the collectors' two reports: it returns only on failure. */
#define EXECUTE(plan, argv, call)                                    \
	({                                                           \
		int reported_ = torsh_process_executing(plan, argv); \
		int result_;                                         \
                                                                     \
		torsh_cpu_masks_for_child(true);                     \
		result_ = (call);                                    \
		torsh_cpu_masks_for_child(false);                    \
                                                                     \
		if (reported_)                                       \
			torsh_process_not_executed(reported_);       \
		torsh_process_drop_plan(plan);                       \
		result_;                                             \
	})

typedef int exec_function(const char *program, char *const *argv, char *const *envp);

/* Not inlined: argument lists may need much of the stack. */
static __attribute__((noinline)) int execute(exec_function *next, const char *program,
					     char *const *argv, char *const *envp)
{
	char *const *environment;
	struct child_plan plan;

	torsh_process_plan(&plan, program, envp);
	environment = CHILD_ENVIRONMENT(&plan);
	return EXECUTE(&plan, argv, next(program, argv, environment));
}

EXPORT int execve(const char *path, char *const *argv, char *const *envp)
{
	return execute(torsh_next.execve, path, argv, envp);
}

EXPORT int execv(const char *path, char *const *argv)
{
	return execute(torsh_next.execve, path, argv, environ);
}

EXPORT int execvpe(const char *file, char *const *argv, char *const *envp)
{
	return execute(torsh_next.execvpe, file, argv, envp);
}

EXPORT int execvp(const char *file, char *const *argv)
{
	return execute(torsh_next.execvpe, file, argv, environ);
}

EXPORT int fexecve(int fd, char *const *argv, char *const *envp)
{
	char path[DESCRIPTOR_PATH_MAX];
	char *const *environment;
	struct child_plan plan;

	torsh_process_name_descriptor(fd, path);
	torsh_process_plan(&plan, path, envp);
	environment = CHILD_ENVIRONMENT(&plan);
	return EXECUTE(&plan, argv, torsh_next.fexecve(fd, argv, environment));
}

EXPORT int execveat(int dir, const char *path, char *const *argv, char *const *envp, int flags)
{
	char descriptor[DESCRIPTOR_PATH_MAX];
	const char *program = dir == AT_FDCWD || *path == '/' ? path : NULL;
	char *const *environment;
	struct child_plan plan;

	if (flags & AT_EMPTY_PATH && !*path) {
		torsh_process_name_descriptor(dir, descriptor);
		program = descriptor;
	}
	torsh_process_plan(&plan, program, envp);
	environment = CHILD_ENVIRONMENT(&plan);
	return EXECUTE(&plan, argv, torsh_next.execveat(dir, path, argv, environment, flags));
}

/*
 * The list forms: builds argv from the arguments, on the stack; rest are the function's parameters
 * after the NULL. Not in functions of their own, for which the compiler would store all registers
 * that might pass arguments.
 */
#define BEGIN_ARGUMENTS(first, rest)                      \
	({                                                \
		size_t n_ = 1;                            \
		char **argv_;                             \
                                                          \
		va_start(rest, first);                    \
		for (const char *at_ = first; at_; n_++)  \
			at_ = va_arg(rest, char *);       \
		va_end(rest);                             \
		argv_ = alloca(n_ * sizeof(char *));      \
		argv_[0] = (char *)(first);               \
		va_start(rest, first);                    \
		for (size_t i_ = 1; i_ < n_; i_++)        \
			argv_[i_] = va_arg(rest, char *); \
		argv_;                                    \
	})

EXPORT int execl(const char *path, const char *first, ...)
{
	char **argv;
	va_list rest;

	argv = BEGIN_ARGUMENTS(first, rest);
	va_end(rest);
	return execute(torsh_next.execve, path, argv, environ);
}

EXPORT int execlp(const char *file, const char *first, ...)
{
	char **argv;
	va_list rest;

	argv = BEGIN_ARGUMENTS(first, rest);
	va_end(rest);
	return execute(torsh_next.execvpe, file, argv, environ);
}

EXPORT int execle(const char *path, const char *first, ...)
{
	char *const *envp;
	char **argv;
	va_list rest;

	argv = BEGIN_ARGUMENTS(first, rest);
	envp = va_arg(rest, char *const *);
	va_end(rest);
	return execute(torsh_next.execve, path, argv, envp);
}

typedef int spawn_function(pid_t *pid, const char *program,
			   const posix_spawn_file_actions_t *actions,
			   const posix_spawnattr_t *attributes, char *const *argv,
			   char *const *envp);

/* Not inlined, as execute. */
static __attribute__((noinline)) int spawn(spawn_function *next, pid_t *pid, const char *program,
					   const posix_spawn_file_actions_t *actions,
					   const posix_spawnattr_t *attributes, char *const *argv,
					   char *const *envp)
{
	char *const *environment;
	struct child_plan plan;
	pid_t child;
	int error;

	torsh_process_plan(&plan, program, envp);
	environment = CHILD_ENVIRONMENT(&plan);
	torsh_cpu_masks_for_child(true);
	error = next(&child, program, actions, attributes, argv, environment);
	torsh_cpu_masks_for_child(false);
	if (!error) {
		if (pid)
			*pid = child;
		torsh_process_forked(child);
		torsh_process_spawned(child, &plan, argv);
	}
	torsh_process_drop_plan(&plan);
	return error;
}

EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *attributes, char *const *argv, char *const *envp)
{
	return spawn(torsh_next.posix_spawn, pid, path, actions, attributes, argv, envp);
}

EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
			const posix_spawnattr_t *attributes, char *const *argv, char *const *envp)
{
	return spawn(torsh_next.posix_spawnp, pid, file, actions, attributes, argv, envp);
}

EXPORT void _exit(int status)
{
	torsh_process_exiting(status, EXIT_BY_UNDERSCORE);
	torsh_next._exit(status);
	__builtin_unreachable();
}

EXPORT void _Exit(int status)
{
	torsh_process_exiting(status, EXIT_BY_UNDERSCORE);
	torsh_next._exit(status);
	__builtin_unreachable();
}

EXPORT void quick_exit(int status)
{
	torsh_process_exiting(status, EXIT_BY_QUICK);
	torsh_next.quick_exit(status);
	__builtin_unreachable();
}

/*
 * Also reached by an uncaught C++ exception. The C library's internal aborts (a damaged heap) don't
 * call it.
 */
EXPORT void abort(void)
{
	torsh_process_aborting();
	torsh_next.abort();
	__builtin_trap();
}

/* What assert expands to; the C library's own calls abort internally. */
EXPORT void __assert_fail(const char *assertion, const char *file, unsigned line,
			  const char *function)
{
	torsh_process_aborting();
	torsh_next.__assert_fail(assertion, file, line, function);
	__builtin_trap();
}

EXPORT void __assert_perror_fail(int error, const char *file, unsigned line, const char *function)
{
	torsh_process_aborting();
	torsh_next.__assert_perror_fail(error, file, line, function);
	__builtin_trap();
}

EXPORT void __assert(const char *assertion, const char *file, int line)
{
	torsh_process_aborting();
	torsh_next.__assert(assertion, file, line);
	__builtin_trap();
}

/*
 * A library that is opened like this binds malloc to its own dependencies or namespace, not to the
 * agent's. Which libraries a dlopen finds depends on its caller: the call must be a tail call.
 */
EXPORT void *dlopen(const char *path, int mode)
{
	if (mode & RTLD_DEEPBIND)
		torsh_process_loading_apart(path);
	if (path && !torsh_allocator_calls_on && torsh_allocator_calls_names(path))
		torsh_process_loading_allocator(path);
	torsh_torch_loading(path);
	torsh_python_loading(path);
	torsh_rebinding_loading();
	return torsh_next.dlopen(torsh_injection_redirect(path), mode);
}

EXPORT void *dlmopen(long space, const char *path, int mode)
{
	if (space != LM_ID_BASE)
		torsh_process_loading_apart(path);
	return torsh_next.dlmopen(space, path, mode);
}

/*
 * Other code may be mapped in place of the library. The result doesn't depend on the caller, so
 * this can be wrapped.
 */
EXPORT int dlclose(void *handle)
{
	int result;

	torsh_unloading_begins();
	result = torsh_next.dlclose(handle);
	torsh_process_code_unmapped();
	torsh_operators_forget_callers();
	torsh_unloading_ended();
	return result;
}
