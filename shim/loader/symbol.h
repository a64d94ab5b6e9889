/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The loader's own dlsym: ours interposes it (shim/loader/lookup.c), and the agent's own questions
 * are not for that.
 */
#ifndef TORSH_SHIM_LOADER_SYMBOL_H
#define TORSH_SHIM_LOADER_SYMBOL_H

typedef void *symbol_look_up(void *handle, const char *name);

/* NULL where the C library has none by the version that all have. */
symbol_look_up *torsh_symbol_next(void);

/* As dlsym; RTLD_NEXT is what comes behind the agent. */
void *torsh_symbol(void *handle, const char *name);

/*
 * The same for malloc's family, as programs refer to it: by the C library's version. A library may
 * define them so that nothing else finds them (libc_malloc_debug.so).
 */
void *torsh_symbol_heap(void *handle, const char *name);

#endif
