/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Loads who used the memory of devices. */
#include "tools/recording/load_parts.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

static char *copy_text(const char *text)
{
	return text && *text ? torsh_need(strdup(text)) : NULL;
}

void torsh_load_device_use(struct recording *recording, const Torsh__DeviceUse *row)
{
	struct recorded_device_use *use;

	if (row->n_bytes != row->n_pid || row->n_name != row->n_pid) {
		recording->n_bad_rows++;
		return;
	}
	recording->device_uses =
		torsh_array_reserve(recording->device_uses, recording->n_device_uses,
				    &recording->device_uses_room, sizeof(*recording->device_uses));
	use = &recording->device_uses[recording->n_device_uses++];
	*use = (struct recorded_device_use){
		.uuid = copy_text(row->uuid),
		.begin_ns = row->begin_ns,
		.end_ns = row->end_ns,
		.has_memory = row->has_used_bytes,
		.total_bytes = row->total_bytes,
		.used_bytes = row->used_bytes,
		.problem = copy_text(row->problem),
		.users = torsh_need_items(NULL, 0, row->n_pid, sizeof(*use->users)),
		.n_users = row->n_pid,
	};
	for (size_t i = 0; i < row->n_pid; i++)
		use->users[i] = (struct recorded_device_user){.pid = row->pid[i],
							      .bytes = row->bytes[i],
							      .name = copy_text(row->name[i])};
}

void torsh_load_forget_device_uses(struct recording *recording)
{
	for (size_t i = 0; i < recording->n_device_uses; i++) {
		struct recorded_device_use *use = &recording->device_uses[i];

		for (size_t k = 0; k < use->n_users; k++)
			free(use->users[k].name);
		free(use->users);
		free(use->uuid);
		free(use->problem);
	}
	free(recording->device_uses);
}
