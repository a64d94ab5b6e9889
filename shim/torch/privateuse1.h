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
 * ProfilerStubs' functions by these names. They may run code of the accelerator that waits or
 * allocates.
 */
void torsh_privateuse1_record(const void *stubs, int *device, struct privateuse1_event *event,
			      int64_t *cpu_ns);
float torsh_privateuse1_elapsed(const void *stubs, const struct privateuse1_event *from,
				const struct privateuse1_event *to);
void torsh_privateuse1_synchronize(const void *stubs);
void torsh_privateuse1_on_each_device(const void *stubs, void (*op)(int device, void *context),
				      void *context);
void torsh_privateuse1_mark(const void *stubs, const char *name);
void torsh_privateuse1_range_push(const void *stubs, const char *name);
void torsh_privateuse1_range_pop(const void *stubs);

#endif
