/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the driver counts beyond a process's own allocations. For device_owners.c only. */
#ifndef TORSH_DEVICE_OWNERS_DRIVER_FIGURE_H
#define TORSH_DEVICE_OWNERS_DRIVER_FIGURE_H

#include "tools/device/owners/device_owners.h"

struct loaded_code;

/* Add to an owner, unless bytes is 0. */
void torsh_device_owners_put(struct device_owners *owners, enum owner_kind kind, const char *name,
			     int64_t bytes, uint64_t n);

/*
 * Set the driver's figure of the moment, and put the owners of what it has more: the free memory of
 * CUDA's pools, other processes, code, the context. scope is the device's at the moment; NULL: it
 * had nothing yet.
 */
void torsh_driver_figure_put(struct device_owners *owners, const struct owners_request *request,
			     const struct device_scope *scope, const struct loaded_code *code);

#endif
