/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The devices of a process, with the properties that they reported. */
#ifndef TORSH_TIMELINE_DEVICE_DEVICE_LIST_H
#define TORSH_TIMELINE_DEVICE_DEVICE_LIST_H

#include <stddef.h>

#include "agent/wire/event.h"

#define LISTED_DEVICES_MAX 1024u /* per process; larger numbers are treated as damage */

struct device_list {
	struct event_device *items; /* in the order of their numbers */
	size_t n, n_room;
};

/* Pass any event; a device's first report counts. */
void torsh_device_list_add(struct device_list *list, const struct event *event);

/* Free the list. */
void torsh_device_list_free(struct device_list *list);

/* Returns the device of that number, or NULL if it was not recorded. */
const struct event_device *torsh_device_list_find(const struct device_list *list, uint32_t device);

#endif
