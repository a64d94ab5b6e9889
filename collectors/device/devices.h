/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The interface of an accelerator: eight functions with the meaning of PyTorch's ProfilerStubs
 * (torch/csrc/profiler/stubs/base.h). A row of the table in devices.c is one kind of device;
 * collectors/device/DEVICES.md describes how to add one.
 *
 * The functions are called on the program's threads, from hooks: none may allocate from the
 * program's heap, take a lock of the program or wait, unless stated. Allocations inside the
 * device's runtime are not recorded.
 */
#ifndef TORSH_COLLECTORS_DEVICE_DEVICES_H
#define TORSH_COLLECTORS_DEVICE_DEVICES_H

#include <stdbool.h>
#include <stdint.h>

struct device_ops {
	const char *name; /* the name of the runtime */

	/* Whether its runtime is in this process and usable. May change from 0 to 1. */
	bool (*enabled)(void);

	/*
	 * Record a mark in a stream; NULL is the thread's current one. *event is a mark of this row
	 * to reuse, or NULL; the row replaces it where it cannot be used there. device and cpu_ns
	 * (CLOCK_MONOTONIC at the call) may be NULL. Returns 0 or -errno.
	 */
	int (*record)(void *stream, int *device, void **event, int64_t *cpu_ns);

	/*
	 * Microseconds from one mark to another of the same device, negative if to comes first.
	 * Returns 0; -EAGAIN while one of them is not reached (a row with may_wait waits instead);
	 * or -errno: it never will be.
	 */
	int (*elapsed)(void *from, void *to, double *us);
	bool may_wait;

	/* Wait for all work of the current device. Never called by a hook. */
	int (*synchronize)(void);

	/* Call op with the number of each device. */
	int (*on_each_device)(void (*op)(int device, void *context), void *context);

	/* Annotate for the device's own tools. NULL: it has none. */
	void (*mark)(const char *name);
	void (*range_push)(const char *name);
	void (*range_pop)(void);
};

/* DEVICE_ROW(name): torsh_device_NAME is defined by collectors/device/device_NAME.c */
#define DEVICE_ROWS             \
	DEVICE_ROW(cuda)        \
	DEVICE_ROW(privateuse1) \
	DEVICE_ROW(simulated)

#define DEVICE_ROW(name) extern const struct device_ops torsh_device_##name;
DEVICE_ROWS
#undef DEVICE_ROW

extern const struct device_ops *const torsh_devices[];
extern const unsigned torsh_n_devices;

/* The row with that name, or NULL. */
const struct device_ops *torsh_device_called(const char *name);

#endif
