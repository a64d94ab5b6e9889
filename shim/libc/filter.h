/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The result of a seccomp filter for the agent's system calls. A program passes its filters to the
 * kernel by prctl or seccomp, where the agent can run them first.
 */
#ifndef TORSH_SHIM_LIBC_FILTER_H
#define TORSH_SHIM_LIBC_FILTER_H

#include <stdbool.h>

struct sock_fprog;

/*
 * Whether the filter would return anything but an error for a system call that records a forked
 * child or a new image.
 */
bool torsh_filter_harms(const struct sock_fprog *filter);

#endif
