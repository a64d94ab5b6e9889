/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The observers of a thread in PyTorch: saves libtorch from rebuilding them if nothing changes. */
#ifndef TORSH_SHIM_TORCH_TORCH_STATE_H
#define TORSH_SHIM_TORCH_TORCH_STATE_H

/*
 * Find libtorch's state by switching the calling thread's observers off and on again; anything
 * unexpected is left alone. Called once, before the agent has an observer, while libtorch's static
 * objects are constructed.
 */
void torsh_torch_state_cache(void);

#endif
