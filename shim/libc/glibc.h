/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Selects the versions of the C library's symbols: those of glibc 2.28 or older, so that a build
 * from one machine runs on every glibc since. The Makefile includes it before each file of the
 * agent, the tools and the private jemalloc, and links the two parts that a glibc before 2.34 has
 * in separate files; `make exports` checks the result. fstat and its relatives were no functions
 * before 2.33: the agent has torsh_sys_fstat, the tools tools/base/glibc.c.
 */
#ifndef TORSH_SHIM_LIBC_GLIBC_H
#define TORSH_SHIM_LIBC_GLIBC_H
#ifndef __ASSEMBLER__

#include <features.h>

#if defined(__x86_64__)
#define VERSIONED(name, version) __asm__(".symver " #name ", " #name "@GLIBC_" #version);
#elif defined(__aarch64__)
#define VERSIONED(name, version) __asm__(".symver " #name ", " #name "@GLIBC_2.17");
#else
#error "the agent supports only x86-64 and aarch64"
#endif
#if defined(TORSH_TOOL)
#define INTERPOSED VERSIONED
#else
#define INTERPOSED(name, version)
#endif
#include "shim/libc/glibc.def"
#undef VERSIONED
#undef INTERPOSED

/*
 * Since 2.38 strtol and its relatives are redirected to versions that accept 0b1, unless this is
 * cleared after the first header.
 */
#undef __GLIBC_USE_C2X_STRTOL
#define __GLIBC_USE_C2X_STRTOL 0
#undef __GLIBC_USE_C23_STRTOL
#define __GLIBC_USE_C23_STRTOL 0

#endif
#endif
