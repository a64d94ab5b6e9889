/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/device/kernels/device_peaks.h"

#include <stddef.h>

/*
 * FP32 units per multiprocessor by compute capability, which the device does not report; 0:
 * unknown.
 */
static uint32_t fp32_units(const struct event_device *device)
{
	if (device->capability_major == 7 ||
	    (device->capability_major == 8 && device->capability_minor == 0))
		return 64;
	return device->capability_major >= 8 && device->capability_major <= 12 ? 128 : 0;
}

const char *torsh_device_peaks(const struct event_device *device, struct device_peaks *peaks)
{
	if (!device || !fp32_units(device) || !device->multiprocessors || !device->clock_khz ||
	    !device->memory_bandwidth)
		return "the device's peaks are not known";
	/* A multiply and an add per unit and clock tick. */
	peaks->gflops = 2e-6 * fp32_units(device) * device->multiprocessors * device->clock_khz;
	peaks->gb_per_s = (double)device->memory_bandwidth * 1e-9;
	peaks->ridge = peaks->gflops / peaks->gb_per_s;
	return NULL;
}
