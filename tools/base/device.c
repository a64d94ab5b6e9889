/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/base/device.h"

#include <inttypes.h>
#include <stdio.h>

const char *torsh_device_name(uint32_t device, char *out)
{
	/* Order of c10/core/DeviceType.h. */
	static const char *const types[] = {"cpu", "cuda", "mkldnn", NULL,  NULL,
					    NULL,  "hip",  NULL,     NULL,  "xla",
					    NULL,  NULL,   "xpu",    "mps", "meta"};
	uint32_t type = device >> 8, index = device & 0xff;
	const char *name = type < sizeof(types) / sizeof(*types) ? types[type] : NULL;

	if (type == 0)
		snprintf(out, DEVICE_NAME_BYTES, "cpu");
	else if (name)
		snprintf(out, DEVICE_NAME_BYTES, "%s:%" PRIu32, name, index);
	else
		snprintf(out, DEVICE_NAME_BYTES, "device %" PRIu32 ":%" PRIu32, type, index);
	return out;
}
