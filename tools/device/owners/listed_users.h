/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Other processes on a device, as NVML lists them, recorded or not. */
#ifndef TORSH_DEVICE_OWNERS_LISTED_USERS_H
#define TORSH_DEVICE_OWNERS_LISTED_USERS_H

#include "tools/device/owners/device_owners.h"

/*
 * Returns the look at the process's device that is nearest to a time; NULL: there is none, with the
 * reason in *reason. It has no problem, and the process itself is in it.
 */
const struct recorded_device_use *torsh_device_users_at(const struct owners_request *request,
							uint64_t at_ns, const char **reason);

/*
 * Returns what other processes have at a time. owners: put each there, unless NULL. Recorded ones
 * have as much as they allocated, and what NVML counts beyond that. Without a look, only those.
 */
uint64_t torsh_device_users_sum(const struct owners_request *request, uint64_t at_ns,
				struct device_owners *owners);

#endif
