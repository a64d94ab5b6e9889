/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The environment variables by which NVTX, ITT and CUDA load a tool. */
#ifndef TORSH_AGENT_PROCESS_INJECTION_H
#define TORSH_AGENT_PROCESS_INJECTION_H

/*
 * INJECTION(source, activity, variable): each DSO that embeds NVTX or ITT reads the variable at its
 * first call.
 */
#define TORSH_INJECTIONS                                                 \
	INJECTION(RANGE_BY_NVTX, ACTIVITY_NVTX, "NVTX_INJECTION64_PATH") \
	INJECTION(RANGE_BY_ITT, ACTIVITY_ITT, "INTEL_LIBITTNOTIFY64")

/* Read by CUDA's driver once, when it starts in a process. */
#define TORSH_CUDA_INJECTION "CUDA_INJECTION64_PATH"

#endif
