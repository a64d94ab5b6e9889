/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/ranges/session_calls.h"

#include <errno.h>

#include "agent/process/agent.h"
#include "agent/process/config.h"
#include "agent/process/process.h"
#include "agent/session/dormant.h"
#include "agent/session/rest.h"
#include "agent/session/writer_call.h"

/*
 * Whether the calling thread is in no hook. The writer waits for an event that is under way: within
 * a hook the wait would not end.
 */
static __attribute__((noinline)) int check_thread(void)
{
	struct producer *producer = torsh_producer_enter();
	int result;

	if (!producer)
		return torsh_producer_self == &torsh_producer_quiet ? -EDEADLK : -ENOSYS;
	/* A handler that interrupted a hook has a producer of its own. */
	result = producer == torsh_producer_self || torsh_producer_self == &torsh_producer_ended
			 ? 0
			 : -EDEADLK;
	torsh_producer_leave(producer);
	return result;
}

static int call(const struct writer_request *request, struct channel_memory *memory)
{
	int saved = errno, result = check_thread();

	*memory = (struct channel_memory){0};
	if (!result && torsh_agent_is_borrowed())
		result = -EPERM;
	if (!result)
		result = torsh_writer_call(torsh_process->channel.header, request, memory);
	errno = saved;
	return result;
}

/* Returns 0 if the process is recorded now. */
static int arm(void)
{
	torsh_dormant_arm();
	torsh_rest_arm();
	return atomic_load_explicit(&torsh_agent_state, memory_order_acquire) == AGENT_ON ? 0
											  : -ENOSYS;
}

int torsh_session_call(uint32_t verb, uint32_t window, struct channel_memory *memory)
{
	const struct writer_request request = {.verb = verb, .window = window};

	*memory = (struct channel_memory){0};
	torsh_rest_if_ended();
	if (verb == CALL_RESUME && torsh_agent_is_dormant())
		return arm();
	return verb < CALL_SNAPSHOT ? call(&request, memory) : -EINVAL;
}

void torsh_session_switch(bool is_on)
{
	struct channel_memory none;

	if (torsh_config.is_dormant)
		torsh_session_call(is_on ? CALL_RESUME : CALL_PAUSE, 0, &none);
}

int torsh_session_write_file(uint32_t verb, const char *argument, const char *path)
{
	const struct writer_request request = {.verb = verb, .argument = argument, .path = path};
	struct channel_memory none;

	if (verb < CALL_SNAPSHOT || !path || !*path)
		return -EINVAL;
	return call(&request, &none);
}
