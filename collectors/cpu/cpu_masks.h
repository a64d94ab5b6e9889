/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which threads believe that they have blocked the sampler's signal. They have not: it would stay
 * pending, and a thread that waits for any signal would get it. A program that names the signal
 * itself, not with all others, gets it: the sampler moves to another one.
 */
#ifndef TORSH_COLLECTORS_CPU_CPU_MASKS_H
#define TORSH_COLLECTORS_CPU_CPU_MASKS_H

#include <stdbool.h>

/* Whether the calling thread believes so. */
bool torsh_cpu_masks_is_blocked(void);

/* The calling thread is new, and inherits that. */
void torsh_cpu_masks_inherit(bool is_blocked);

#endif
