/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/device/device_list.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"

void torsh_device_list_add(struct device_list *list, const struct event *event)
{
	uint32_t device = event->device.device;
	size_t at = 0;

	if (event->id != EVENT_DEVICE || device >= LISTED_DEVICES_MAX)
		return;
	while (at < list->n && list->items[at].device < device)
		at++;
	if (at < list->n && list->items[at].device == device)
		return;
	list->items =
		torsh_array_reserve(list->items, list->n, &list->n_room, sizeof(*list->items));
	memmove(list->items + at + 1, list->items + at, (list->n - at) * sizeof(*list->items));
	list->items[at] = event->device;
	list->n++;
}

void torsh_device_list_free(struct device_list *list)
{
	free(list->items);
	*list = (struct device_list){0};
}

const struct event_device *torsh_device_list_find(const struct device_list *list, uint32_t device)
{
	for (size_t i = 0; i < list->n; i++) {
		if (list->items[i].device == device)
			return &list->items[i];
	}
	return NULL;
}
