/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The entry point by which CUDA's driver opens the agent. */
#include "shim/hooks.h"

/*
 * Called by libcuda inside of cuInit, where CUDA_INJECTION64_PATH leads here. Not 0: it is content.
 */
EXPORT int InitializeInjection(void)
{
	torsh_cuda_injected();
	return 1;
}
