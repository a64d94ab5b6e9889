/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TORSH_SHIM_LIBC_SIGNALS_H
#define TORSH_SHIM_LIBC_SIGNALS_H

/* A block is about to be freed while CPython's end is watched: it waits here if it has begun. */
void torsh_signals_freeing(void);

#endif
