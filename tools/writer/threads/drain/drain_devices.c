/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Who uses the devices, on the drain thread: when to look, and what is written. */
#include <stdlib.h>

#include "tools/writer/output/rows/rows.h"
#include "tools/writer/threads/drain/drain_state.h"
#include "tools/writer/usage/device_users.h"

void torsh_drain_check_devices(struct drain *drain, struct target *target)
{
	if (!target->state.has_asked_driver)
		return;
	target->state.has_asked_driver = false;
	if (!drain->has_device_users)
		drain->device_users = torsh_device_users_start();
	drain->has_device_users = true;
	if (drain->device_users)
		torsh_device_users_request(drain->device_users);
}

static struct device_users_look *reversed(struct device_users_look *looks)
{
	struct device_users_look *first = NULL;

	while (looks) {
		struct device_users_look *next = looks->next;

		looks->next = first;
		first = looks;
		looks = next;
	}
	return first;
}

void torsh_drain_write_devices(struct drain *drain, bool is_end)
{
	struct device_users_look *looks = NULL;

	if (!drain->device_users)
		return;
	if (is_end)
		torsh_device_users_stop(drain->device_users, &looks);
	else
		looks = torsh_device_users_take(drain->device_users);
	if (is_end)
		drain->device_users = NULL;
	for (looks = reversed(looks); looks;) {
		struct device_users_look *next = looks->next;

		torsh_rows_device_use(drain->checkpoints.file, &looks->use,
				      torsh_session_ns(&drain->session, looks->use.begin_ns),
				      torsh_session_ns(&drain->session, looks->use.end_ns));
		free(looks);
		looks = next;
	}
}
