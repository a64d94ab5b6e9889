/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/process/process.h"

#include "agent/modules/maps.h"
#include "agent/process/config.h"
#include "agent/producer/counter.h"
#include "shim/hot.h"
#include "shim/libc/thread.h"
#include "shim/pause.h"

_Atomic int torsh_agent_state;
bool torsh_agent_has_begun;
struct process *torsh_process;
struct channel torsh_last_channel;

_Atomic uint64_t torsh_spare_counters[N_COUNTERS];
_Atomic uint64_t *torsh_counters = torsh_spare_counters;

const _Atomic uint32_t torsh_never_paused;
HOT const _Atomic uint32_t *_Atomic torsh_pause = &torsh_never_paused;

const _Atomic uint32_t *_Atomic torsh_recording_pause = &torsh_never_paused;

static const int no_pid;
HOT const int *torsh_pause_pid = &no_pid;

static _Atomic bool is_forbidden;
static _Atomic bool is_kept;

bool torsh_agent_is_abandoned(void)
{
	const struct channel_header *header = torsh_process->channel.header;
	uint32_t pid = atomic_load_explicit(&header->writer_pid, memory_order_relaxed);

	return pid && torsh_sys_is_gone(pid);
}

void torsh_agent_forbid_start(void)
{
	atomic_store_explicit(&is_forbidden, true, memory_order_relaxed);
}

void torsh_agent_forbid(void)
{
	if (atomic_exchange_explicit(&is_forbidden, true, memory_order_relaxed))
		return;
	torsh_maps_forbid();
	if (atomic_load_explicit(&torsh_agent_state, memory_order_acquire) == AGENT_ON &&
	    torsh_process->pid)
		torsh_channel_note(
			&torsh_process->channel,
			"the program put a filter on its system calls (seccomp) that may end it for calls that "
			"the start of a recording takes: children from then on are not recorded");
}

bool torsh_agent_is_sandboxed(void)
{
	const struct channel_header *header = torsh_last_channel.header;

	return atomic_load_explicit(&is_forbidden, memory_order_relaxed) ||
	       (header && atomic_load_explicit(&header->has_new_filter, memory_order_relaxed));
}

bool torsh_agent_may_rest(void)
{
	return torsh_config.is_dormant &&
	       !(torsh_config.activities & (ACTIVITY_SAMPLES | ACTIVITY_PERF)) &&
	       !atomic_load_explicit(&is_kept, memory_order_relaxed);
}

void torsh_agent_keep_on(void)
{
	atomic_store_explicit(&is_kept, true, memory_order_relaxed);
	if (torsh_agent_is_on() && torsh_process->pid)
		atomic_store_explicit(&torsh_process->channel.header->may_rest, 0,
				      memory_order_relaxed);
}

bool torsh_agent_has_ended(void)
{
	return torsh_agent_is_on() && torsh_process->pid &&
	       atomic_load_explicit(&torsh_process->channel.header->is_paused,
				    memory_order_relaxed) == CHANNEL_ENDED;
}

bool torsh_agent_is_borrowed(void)
{
	return atomic_load_explicit(&torsh_agent_state, memory_order_relaxed) == AGENT_ON &&
	       torsh_process->pid && !torsh_sys_is_self((uint32_t)torsh_thread_tid());
}
