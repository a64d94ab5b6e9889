/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * CPython's C API, as far as it is needed to run a few lines in a program's interpreter that call
 * back. Nothing is linked: the functions are looked for in what is loaded.
 */
#ifndef TORSH_SHIM_CPYTHON_CPYTHON_API_H
#define TORSH_SHIM_CPYTHON_CPYTHON_API_H

typedef void *cpython_function(void *self, void *argument);

/* PyMethodDef; has to stay for ever. */
struct cpython_method {
	const char *name;
	cpython_function *function;
	int flags;
	const char *documentation;
};

#define CPYTHON_NO_ARGUMENT 0x4 /* METH_NOARGS */
#define CPYTHON_ONE_ARGUMENT 0x8 /* METH_O */

struct cpython_api {
#define API(result, name, parameters) result(*name) parameters;
#include "shim/cpython/cpython_api.def"
#undef API
};

extern struct cpython_api torsh_cpython_api;

/*
 * Is there an interpreter, does the calling thread hold its lock, and is no exception on its way?
 * Otherwise nothing of torsh_cpython_api may be called. Not for a hot path.
 */
int torsh_cpython_api_is_ready(void);

/*
 * Run source in a namespace of its own, in which the methods (up to the one without a name) are
 * functions. file is what tracebacks say. Returns 0, or -1: an exception was raised, and dropped.
 */
int torsh_cpython_api_run(const char *source, const char *file, struct cpython_method *methods);

#endif
