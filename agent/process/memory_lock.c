/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/process/memory_lock.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include "agent/process/process.h"
#include "shim/sys.h"

#define PAGE 4096u

static uint64_t limit_bytes; /* at the start of the process image */

void torsh_memory_lock_start(void)
{
	struct rlimit limit;
	bool has_limit = !getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur != RLIM_INFINITY;

	limit_bytes = has_limit ? limit.rlim_cur : UINT64_MAX;
}

/*
 * In a process that locks its mappings, only a process with CAP_IPC_LOCK can map more than the
 * limit. The test mapping is inaccessible, so that no page is brought in.
 */
static bool is_limited(void)
{
	void *all;

	if (limit_bytes == UINT64_MAX)
		return false;
	all = torsh_sys_mmap(NULL, limit_bytes + PAGE, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (torsh_sys_failed((long)all))
		return true;
	torsh_sys_munmap(all, limit_bytes + PAGE);
	return false;
}

void torsh_memory_lock_note(void)
{
	if (torsh_memory_lock_is_on())
		return;
	atomic_store_explicit(&torsh_process->lock_is_limited, is_limited(), memory_order_relaxed);
	atomic_store_explicit(&torsh_process->locks_memory, true, memory_order_relaxed);
}

bool torsh_memory_lock_is_on(void)
{
	return atomic_load_explicit(&torsh_process->locks_memory, memory_order_relaxed);
}

bool torsh_memory_lock_is_limited(void)
{
	return atomic_load_explicit(&torsh_process->lock_is_limited, memory_order_relaxed);
}

uint64_t torsh_memory_lock_limit(void)
{
	return limit_bytes;
}
