/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What follows tasks needs of CPython: its functions and types, what an object is called, and the
 * tables of methods that types have. A C function in such a table is replaced by one that calls it:
 * the method object, its name and all that a program can see of it stay.
 *
 * Nothing here runs Python code. The calling thread holds the interpreter's lock.
 */
#ifndef TORSH_SHIM_CPYTHON_CPYTHON_OBJECTS_H
#define TORSH_SHIM_CPYTHON_CPYTHON_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/cpython/cpython_api.h"

#define CPYTHON_KEYWORD_ARRAY 0x82 /* METH_FASTCALL | METH_KEYWORDS */
#define CPYTHON_TYPED_ARRAY 0x282 /* METH_METHOD besides */
#define CPYTHON_TUPLE 0x1 /* METH_VARARGS */
#define CPYTHON_KEYWORD_TUPLE 0x3 /* METH_KEYWORDS besides */

struct cpython_objects {
#define OBJECT_API(result, name, parameters) result(*name) parameters;
#define OBJECT(name) void *name;
#include "shim/cpython/cpython_objects.def"
#undef OBJECT_API
#undef OBJECT
	size_t more_head_bytes; /* of each object, without a global lock */
};

extern struct cpython_objects torsh_cpython_objects;

/* Find the functions and types. Returns false where there is no interpreter, or one lacks. */
bool torsh_cpython_objects_find(void);

/* Whether types have the layout that is read here; they were found. */
bool torsh_cpython_objects_are_known(void);

/* A module that was imported; NULL: it wasn't. Borrowed. */
void *torsh_cpython_module(const char *name);

/* The type of an object, which has it, and how the type is called. */
void *torsh_cpython_type_of(void *object);
const char *torsh_cpython_name_of_type(const void *type);

/* The first field of an object. */
void *torsh_cpython_first_of(const void *object);

/* How a callable is called, whose text that is; behind functools.partial, what that calls. */
const char *torsh_cpython_name_of_callable(void *callable);

/* The entry of a method in a type's table; NULL: it has none. */
struct cpython_method *torsh_cpython_method_of(void *type, const char *name);

/* Whether a method, which may be NULL, is there, is called like that, and can be replaced. */
bool torsh_cpython_method_is_replaceable(const struct cpython_method *method, int flags);

/* Store its function at next, and have another one called instead. */
void torsh_cpython_method_replace(struct cpython_method *method, void *function, void *next);

#endif
