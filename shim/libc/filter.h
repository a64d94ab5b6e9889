/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The result of a seccomp filter for the agent's system calls. A program shows its filters to the
 * kernel by prctl or seccomp: there they can be run as the kernel will.
 */
#ifndef TORSH_SHIM_LIBC_FILTER_H
#define TORSH_SHIM_LIBC_FILTER_H

#include <stdbool.h>

struct sock_fprog;

/*
 * Whether the filter would answer a system call of a forked child's recording, or of a new image,
 * with more than an error.
 */
bool torsh_filter_harms(const struct sock_fprog *filter);

#endif
