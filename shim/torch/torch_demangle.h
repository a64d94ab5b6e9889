/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The names of autograd's nodes. Whoever observes operators, libtorch makes each node's name anew,
 * twice a step: c10::demangle calls the C++ run-time's __cxa_demangle, which takes a microsecond
 * and several blocks that the program wouldn't allocate by itself. The agent remembers what it
 * returned.
 */
#ifndef TORSH_SHIM_TORCH_TORCH_DEMANGLE_H
#define TORSH_SHIM_TORCH_TORCH_DEMANGLE_H

#include <stddef.h>

/*
 * A block of the program's for a name; its caller frees it. frame: where its stack starts, as in
 * shim/hooks.h.
 */
typedef void *torch_name_block(size_t n_bytes, const void *frame);

/*
 * Bind libc10's calls of __cxa_demangle to a function that remembers results; once, when operators
 * are observed. Does nothing where libc10 has no such calls in memory that stays writable.
 */
void torsh_torch_demangle_bind(torch_name_block *name_block);

#endif
