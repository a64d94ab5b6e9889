/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The C library's dlsym: the agent interposes dlsym (shim/loader/lookup.c), and its own lookups
 * bypass that.
 */
#ifndef TORSH_SHIM_LOADER_SYMBOL_H
#define TORSH_SHIM_LOADER_SYMBOL_H

typedef void *symbol_look_up(void *handle, const char *name);

/* The next dlsym; NULL if the C library has none with the common version. */
symbol_look_up *torsh_symbol_next(void);

/* Like dlsym; RTLD_NEXT searches after the agent. */
void *torsh_symbol(void *handle, const char *name);

/*
 * Like torsh_symbol, for malloc's family as programs refer to it: with the C library's version.
 * Some libraries define them so that no other lookup finds them (libc_malloc_debug.so).
 */
void *torsh_symbol_heap(void *handle, const char *name);

#endif
