/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* All calls from lower layers up; agent/process/callbacks.h describes when each is made. */
#include "agent/process/callbacks.h"

#include "agent/process/agent.h"
#include "agent/python/python.h"
#include "collectors/cpu/cpu_sampler.h"
#include "collectors/cuda/cuda.h"
#include "collectors/python/gc_events.h"
#include "collectors/torch/operator_events.h"
#include "collectors/waits/wait_events.h"
#include "shim/allocators/allocator_calls.h"
#include "shim/blas/blas.h"
#include "shim/cpython/cpython_memory.h"
#include "shim/mpi/mpi.h"
#include "shim/waits/wait_calls.h"
#include "shim/nccl/nccl_api.h"

const struct callbacks torsh_callbacks = {
	.process_starts = torsh_agent_start,
	.process_armed = torsh_agent_arm,
	.child_starts = torsh_agent_restart_in_child,
	.thread_starts = torsh_cpu_sampler_thread_starts,
	.thread_ends = torsh_cpu_sampler_thread_ends,
	.heap_starts = torsh_allocator_objects_start,
	.armed = torsh_torch_armed,
	.mpi_starts = torsh_mpi_objects_start,
	.waits_start = torsh_waits_objects_start,
	.process_ends = torsh_waits_end,
	.nccl_starts = torsh_nccl_objects_start,
	.blas_starts = torsh_blas_objects_start,
	.object_found = torsh_python_detect,
	.interpreter_found = torsh_cpython_memory_watch,
	.python_runs = torsh_gc_watch,
	.device_used = torsh_cuda_first_work,
	.device_client_subscribes = torsh_cuda_before_client,
	.may_call_driver = torsh_cuda_may_call,
	.may_call_driver_at_call = torsh_cuda_may_call_at_call,
};
