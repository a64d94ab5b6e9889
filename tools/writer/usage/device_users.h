/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Who uses the memory of the machine's devices, by NVML, while a recorded process uses one: looked
 * at whenever the driver was queried for a target. A thread of its own calls NVML, which may take
 * long; it starts with the first look.
 */
#ifndef TORSH_WRITER_USAGE_DEVICE_USERS_H
#define TORSH_WRITER_USAGE_DEVICE_USERS_H

#include "tools/writer/usage/nvml.h"

struct device_users;

/* A look at a device, or why there is none: then only problem is set. */
struct device_users_look {
	struct device_users_look *next;
	struct nvml_use use;
};

/* Start the thread. Returns NULL if that fails. */
struct device_users *torsh_device_users_start(void);

/* Have it look soon: at most every 20 ms. */
void torsh_device_users_request(struct device_users *users);

/*
 * Returns the looks since the last call that differ from the one before, the latest first; the
 * caller frees each.
 */
struct device_users_look *torsh_device_users_take(struct device_users *users);

/*
 * Wait until a requested look is there, at most a second, and end the thread. It is left alone if
 * NVML hangs. *rest: the last looks, as of torsh_device_users_take.
 */
void torsh_device_users_stop(struct device_users *users, struct device_users_look **rest);

#endif
