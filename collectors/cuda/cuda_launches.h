/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A call that gives a device work, as events: collectors/cuda/cuda_events.c sees it,
 * collectors/cuda/cuda_launches.c says it.
 */
#ifndef TORSH_COLLECTORS_CUDA_CUDA_LAUNCHES_H
#define TORSH_COLLECTORS_CUDA_CUDA_LAUNCHES_H

#include "agent/wire/event.h"
#include "collectors/device/device_cuda.h"
#include "shim/cuda/driver.h"

/* A call, from its return until it is known how long its work took. */
struct device_pair {
	struct device_pair *next;
	void *begin, *end; /* marks */
	struct driver_work work;
	struct device_location location;
	uint32_t name, registers, static_shared_bytes, local_bytes;
};

/* What only the driver knows of the work. With its calls made quiet. */
void torsh_cuda_describe(struct device_pair *pair);

/*
 * Record the call, made by the function of this frame; its work, with the device's times, or
 * without and why (a label).
 */
void torsh_cuda_send_launch(const struct driver_work *work, int result, const void *frame);
void torsh_cuda_send_timed(const struct device_pair *pair, uint64_t begin_ns, uint64_t duration_ns);
void torsh_cuda_send_untimed(const struct device_pair *pair, uint32_t reason);

/* A note, where there was something that is not recorded. */
void torsh_cuda_send_unrecorded(void);

uint32_t torsh_cuda_label(const char *text); /* 0 of NULL */

#endif
