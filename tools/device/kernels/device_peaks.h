/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How fast a device can be at most, by what it reports for itself. Nothing is measured, and nothing
 * known of its model by name.
 */
#ifndef TORSH_DEVICE_KERNELS_DEVICE_PEAKS_H
#define TORSH_DEVICE_KERNELS_DEVICE_PEAKS_H

#include "agent/wire/event.h"

#define PEAK_GFLOPS_SOURCE \
	"FP32 units by compute capability, times multiprocessors, clock and 2; without tensor cores"
#define PEAK_BANDWIDTH_SOURCE "memory clock and bus width, as the device says them"

struct device_peaks {
	double gflops; /* FP32, without tensor cores */
	double gb_per_s; /* of its memory */
	double ridge; /* FLOP a byte: what is below is bound by memory */
};

/* Returns NULL, or why they are not known. device may be NULL. */
const char *torsh_device_peaks(const struct event_device *device, struct device_peaks *peaks);

#endif
