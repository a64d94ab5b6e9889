/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/python/python_runs.h"

#include <stdatomic.h>

#include "agent/process/process.h"
#include "collectors/python/gc_events.h"
#include "collectors/tasks/task_events.h"
#include "shim/cpython/cpython_greenlets.h"
#include "shim/hooks.h"

void torsh_python_runs(void)
{
	torsh_gc_watch();
	torsh_tasks_watch();
}

void torsh_python_loading(const char *path)
{
	if (atomic_load_explicit(&torsh_agent_state, memory_order_acquire) != AGENT_ON ||
	    !torsh_process->pid)
		return;
	torsh_python_runs();
	torsh_cpython_greenlets_loading(path);
}
