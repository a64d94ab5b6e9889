/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The contract with an accelerator: eight functions with the meaning of PyTorch's ProfilerStubs
 * (torch/csrc/profiler/stubs/base.h). A row of the table in devices.c is one kind of device;
 * collectors/device/DEVICES.md shows how to add one.
 *
 * They are called on the program's threads, from hooks: none may allocate from the program's heap
 * by itself, take a lock of the program's, or wait, but where it is said. What the device's runtime
 * allocates inside is not recorded.
 */
#ifndef TORSH_COLLECTORS_DEVICE_DEVICES_H
#define TORSH_COLLECTORS_DEVICE_DEVICES_H

#include <stdint.h>

struct device_ops {
	const char *name; /* as the runtime calls itself */

	/* Is its runtime in this process, and can it be asked? May change from 0 to 1. */
	int (*enabled)(void);

	/*
	 * Put a mark into a stream: NULL is the thread's current one. *event is one that this row
	 * made before and that is used again, or NULL; the row replaces it where it can't be used
	 * there. device and cpu_ns (CLOCK_MONOTONIC, the moment of the call) may be NULL. Returns 0
	 * or -errno.
	 */
	int (*record)(void *stream, int *device, void **event, int64_t *cpu_ns);

	/*
	 * Microseconds from one mark to another of the same device, below 0 where it is the earlier
	 * one. Returns 0, -EAGAIN as long as one of them was not reached (a row whose may_wait is
	 * set waits instead), or -errno: it never will be.
	 */
	int (*elapsed)(void *from, void *to, double *us);
	int may_wait;

	/* Wait for all that the current device was given. Never called by a hook. */
	int (*synchronize)(void);

	/* Call op for each device, by its number. */
	int (*on_each_device)(void (*op)(int device, void *context), void *context);

	/* Tell the device's own tools. NULL: it has none. */
	void (*mark)(const char *name);
	void (*range_push)(const char *name);
	void (*range_pop)(void);
};

/* DEVICE_ROW(name): torsh_device_NAME is defined by collectors/device_NAME.c */
#define DEVICE_ROWS             \
	DEVICE_ROW(cuda)        \
	DEVICE_ROW(privateuse1) \
	DEVICE_ROW(simulated)

#define DEVICE_ROW(name) extern const struct device_ops torsh_device_##name;
DEVICE_ROWS
#undef DEVICE_ROW

extern const struct device_ops *const torsh_devices[];
extern const unsigned torsh_n_devices;

/* The row of that name, or NULL. */
const struct device_ops *torsh_device_called(const char *name);

#endif
