/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * torch::profiler::impl::ProfilerStubs (torch/csrc/profiler/stubs/base.h) of the accelerator that
 * is registered as PyTorch's PrivateUse1, called without PyTorch's headers: by the order of its
 * virtual functions, unchanged since 1.13, and only if the object's type info names that class as
 * its base. For libstdc++'s ABI.
 */
#ifndef TORSH_SHIM_TORCH_PRIVATEUSE1_H
#define TORSH_SHIM_TORCH_PRIVATEUSE1_H

#include <stdint.h>

/* A std::shared_ptr<void>. All zeros is an empty one; the next record releases what it owns. */
struct privateuse1_event {
	void *object, *owner;
};

/*
 * The registered stubs if they report that they are enabled; NULL: none are. They live as long as
 * the process.
 */
const void *torsh_privateuse1_stubs(void);

/*
 * The functions of the stubs, which are c10's ProfilerStubs (torch/csrc/profiler/stubs/base.h).
 * They may run code of the accelerator that waits or allocates.
 */

/* Record an event on the current stream; its device goes to *device. cpu_ns may be NULL. */
void torsh_privateuse1_record(const void *stubs, int *device, struct privateuse1_event *event,
			      int64_t *cpu_ns);

/* Returns the time between two events in us. May wait for the later one. */
float torsh_privateuse1_elapsed(const void *stubs, const struct privateuse1_event *from,
				const struct privateuse1_event *to);

/* Wait until the device has done all work. */
void torsh_privateuse1_synchronize(const void *stubs);

/* Call op with the number of each device, which is current during the call. */
void torsh_privateuse1_on_each_device(const void *stubs, void (*op)(int device, void *context),
				      void *context);

/* Mark this moment in the accelerator's own profiler. */
void torsh_privateuse1_mark(const void *stubs, const char *name);

/* Begin a range in the accelerator's own profiler. */
void torsh_privateuse1_range_push(const void *stubs, const char *name);

/* End the innermost range. */
void torsh_privateuse1_range_pop(const void *stubs);

#endif
