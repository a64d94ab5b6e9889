/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The part of CPython's C API that is needed to run a few lines in a program's interpreter and be
 * called back. Nothing is linked: the functions are looked up in the loaded objects.
 */
#ifndef TORSH_SHIM_CPYTHON_CPYTHON_API_H
#define TORSH_SHIM_CPYTHON_CPYTHON_API_H

#include <stdbool.h>

typedef void *cpython_function(void *self, void *argument);

/* PyMethodDef; must never be freed. */
struct cpython_method {
	const char *name;
	cpython_function *function;
	int flags;
	const char *documentation;
};

#define CPYTHON_NO_ARGUMENT 0x4 /* METH_NOARGS */
#define CPYTHON_ONE_ARGUMENT 0x8 /* METH_O */
#define CPYTHON_ARGUMENT_ARRAY 0x80 /* METH_FASTCALL: (self, arguments, how many) */

struct cpython_api {
#define API(result, name, parameters) result(*name) parameters;
#include "shim/cpython/cpython_api.def"
#undef API
};

extern struct cpython_api torsh_cpython_api;

/* Find the functions. Returns false without an interpreter. Not for hot paths. */
bool torsh_cpython_api_find(void);

/*
 * Whether there is an interpreter, the calling thread holds its lock, and no exception is set.
 * Otherwise no function of torsh_cpython_api may be called. Not for hot paths.
 */
bool torsh_cpython_api_is_ready(void);

/*
 * Run source in a namespace of its own, with methods (ended by one without a name) as functions.
 * file is the name in tracebacks. Returns 0, or -1 after an exception, which is cleared.
 */
int torsh_cpython_api_run(const char *source, const char *file, struct cpython_method *methods);

#endif
