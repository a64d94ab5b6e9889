/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * HOT: a variable that the hooks of the heap read at each call and that hardly ever changes.
 * Between two calls the program may evict all of the agent's data: these share few cache lines.
 */
#ifndef TORSH_SHIM_HOT_H
#define TORSH_SHIM_HOT_H

#define HOT __attribute__((section("torsh_hot")))

#endif
