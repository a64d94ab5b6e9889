/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The environment variables through which programs find consumers of their ranges. The agent sets
 * them to its own path if they are unset (agent/process/environment.h). A value from the user
 * stays, and the agent is inserted when that consumer is opened.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/process/config.h"
#include "agent/process/injection.h"
#include "agent/process/paths.h"
#include "agent/process/process.h"
#include "shim/ranges/ranges.h"

static const struct injection {
	enum range_source source;
	const char *variable;
} injections[] = {
#define INJECTION(source, activity, variable) {source, variable},
	TORSH_INJECTIONS
#undef INJECTION
};

#define N_INJECTIONS (sizeof(injections) / sizeof(*injections))

const char *torsh_injection_consumer(enum range_source source)
{
	for (size_t i = 0; i < N_INJECTIONS; i++) {
		const char *path =
			injections[i].source == source ? getenv(injections[i].variable) : NULL;

		if (path && *path && strcmp(path, torsh_agent_path()))
			return path;
	}
	return NULL;
}

const char *torsh_injection_redirect(const char *path)
{
	if (!path || atomic_load_explicit(&torsh_agent_state, memory_order_acquire) != AGENT_ON)
		return path;
	for (size_t i = 0; i < N_INJECTIONS; i++) {
		const char *consumer = torsh_injection_consumer(injections[i].source);

		if (consumer && !strcmp(consumer, path) &&
		    torsh_ranges_wanted(injections[i].source))
			return torsh_agent_path();
	}
	return path;
}
