/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The environment variables by which NVTX, ITT, CUDA and NCCL load a tool. */
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

/*
 * Read by NCCL when a process makes its first communicator. A value from the user stays: the agent
 * is inserted where NCCL looks up what it opened (shim/nccl/nccl_profiler.c).
 */
#define TORSH_NCCL_INJECTION "NCCL_PROFILER_PLUGIN"

#endif
