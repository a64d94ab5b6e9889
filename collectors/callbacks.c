/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* All calls from lower layers up; agent/process/callbacks.h describes when each is made. */
#include "agent/process/callbacks.h"

#include "agent/process/agent.h"
#include "agent/process/process.h"
#include "agent/producer/lifecycle.h"
#include "agent/python/python.h"
#include "agent/session/rest.h"
#include "collectors/cpu/cpu_sampler.h"
#include "collectors/cuda/cuda.h"
#include "collectors/perf/perf_set.h"
#include "collectors/perf/thread_counters.h"
#include "collectors/python/python_runs.h"
#include "collectors/torch/operator_events.h"
#include "collectors/waits/wait_events.h"
#include "shim/allocators/allocator_calls.h"
#include "shim/blas/blas.h"
#include "shim/cpython/cpython_memory.h"
#include "shim/libc/loop_sockets.h"
#include "shim/mpi/mpi.h"
#include "shim/ranges/itt.h"
#include "shim/ranges/nvtx.h"
#include "shim/waits/wait_calls.h"
#include "shim/nccl/nccl_api.h"

static void start_in_child(void)
{
	if (!torsh_agent_is_sandboxed())
		torsh_perf_set_forked();
	torsh_agent_restart_in_child();
}

static void start_thread(void)
{
	torsh_cpu_sampler_thread_starts();
	torsh_thread_counters_start();
}

static void end_thread(void)
{
	torsh_thread_counters_finish(true);
	torsh_cpu_sampler_thread_ends();
}

static void end_process(void)
{
	torsh_thread_counters_finish(false);
	torsh_waits_end();
}

const struct callbacks torsh_callbacks = {
	.process_starts = torsh_agent_start,
	.process_armed = torsh_rest_arm,
	.producer_renews = torsh_lifecycle_renew,
	.child_starts = start_in_child,
	.thread_starts = start_thread,
	.thread_ends = end_thread,
	.heap_starts = torsh_allocator_objects_start,
	.armed = torsh_torch_armed,
	.mpi_starts = torsh_mpi_objects_start,
	.waits_start = torsh_waits_objects_start,
	.requests_start = torsh_loop_sockets_start,
	.process_ends = end_process,
	.nccl_starts = torsh_nccl_objects_start,
	.blas_starts = torsh_blas_objects_start,
	.nvtx_tool_wanted = torsh_nvtx_attach_consumer,
	.itt_tool_wanted = torsh_itt_attach_consumer,
	.object_found = torsh_python_detect,
	.interpreter_found = torsh_cpython_memory_watch,
	.python_runs = torsh_python_runs,
	.device_used = torsh_cuda_first_work,
	.device_client_subscribes = torsh_cuda_before_client,
	.may_call_driver = torsh_cuda_may_call,
	.may_call_driver_at_call = torsh_cuda_may_call_at_call,
};
