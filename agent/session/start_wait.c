/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/session/start_wait.h"

#include "shim/sys.h"

#define STEP_NS UINT64_C(50000000)
#define N_STEPS 100 /* 5 s */

void torsh_start_wait(struct channel_header *header)
{
	uint32_t pid = atomic_load_explicit(&header->writer_pid, memory_order_relaxed);

	for (int i = 0; i < N_STEPS; i++) {
		/* Pairs with the release in begin_target of the writer. */
		if (atomic_load_explicit(&header->writer_state, memory_order_acquire) !=
			    CHANNEL_WRITER_NONE ||
		    torsh_sys_is_gone(pid))
			return;
		torsh_sys_futex_wait(&header->writer_state, CHANNEL_WRITER_NONE, STEP_NS);
	}
}
