/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which of PyTorch's observers a thread has: spares libtorch to make that anew where nothing
 * changes.
 */
#ifndef TORSH_SHIM_TORCH_TORCH_STATE_H
#define TORSH_SHIM_TORCH_TORCH_STATE_H

/*
 * Look where libtorch keeps it, by switching the calling thread's observers off and on again; what
 * is not found as expected is left alone. Once, before there is an observer of ours, where
 * libtorch's static objects are made.
 */
void torsh_torch_state_cache(void);

#endif
