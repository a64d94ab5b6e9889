/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The entry point through which CUDA's driver opens the agent. */
#include "shim/hooks.h"

/* libcuda calls it in cuInit if CUDA_INJECTION64_PATH is the agent. A nonzero result is success. */
EXPORT int InitializeInjection(void)
{
	torsh_cuda_injected();
	return 1;
}
