/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The table of accelerators: collectors/device/DEVICES.md. */
#include "collectors/device/devices.h"

#include <stddef.h>
#include <string.h>

const struct device_ops *const torsh_devices[] = {
#define DEVICE_ROW(name) &torsh_device_##name,
	DEVICE_ROWS
#undef DEVICE_ROW
};

const unsigned torsh_n_devices = sizeof(torsh_devices) / sizeof(*torsh_devices);

const struct device_ops *torsh_device_called(const char *name)
{
	for (unsigned i = 0; i < torsh_n_devices; i++)
		if (!strcmp(torsh_devices[i]->name, name))
			return torsh_devices[i];
	return NULL;
}
