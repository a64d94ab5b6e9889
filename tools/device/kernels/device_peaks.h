/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A device's peak rates, computed from the properties that it reports. Nothing is measured, and no
 * model names are used.
 */
#ifndef TORSH_DEVICE_KERNELS_DEVICE_PEAKS_H
#define TORSH_DEVICE_KERNELS_DEVICE_PEAKS_H

#include "agent/wire/event.h"

#define PEAK_GFLOPS_SOURCE \
	"FP32 units by compute capability, times multiprocessors, clock and 2; without tensor cores"
#define PEAK_BANDWIDTH_SOURCE "memory clock and bus width, as the device reports them"

struct device_peaks {
	double gflops; /* FP32, without tensor cores */
	double gb_per_s; /* of its memory */
	double ridge; /* FLOP per byte: below it, a kernel is memory-bound */
};

/* Returns NULL, or why the peaks are unknown. device may be NULL. */
const char *torsh_device_peaks(const struct event_device *device, struct device_peaks *peaks);

#endif
