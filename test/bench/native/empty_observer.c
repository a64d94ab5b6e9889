/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * An observer of PyTorch's operators that does nothing: what PyTorch itself costs as soon as
 * anybody looks. Loaded and called by workloads/torch_steps.py.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* at::RecordFunctionCallback */
struct callback {
	void **(*start)(void **context, const void *record);
	void (*end)(const void *record, void *context);
	double probability;
	bool scopes[10], needs_inputs, needs_outputs, needs_ids;
};

/* Calls of operators that were observed; of one thread where it matters. */
static uint64_t n_calls;

uint64_t observed(void)
{
	return n_calls;
}

/* std::unique_ptr<at::ObserverContext> of nothing; on x86-64 the caller passes its place first. */
static void **start(void **context, const void *record)
{
	(void)record;
	n_calls++;
	*context = NULL;
	return context;
}

static void end(const void *record, void *context)
{
	(void)record;
	(void)context;
}

/* libtorch_cpu: its path. Returns 0, or -1 where it doesn't have what is needed. */
int observe(const char *libtorch_cpu, int with_inputs)
{
	static const char name[] = "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE";
	void *library = dlopen(libtorch_cpu, RTLD_NOLOAD | RTLD_LAZY);
	uint64_t (*add)(struct callback) =
		library ? (uint64_t(*)(struct callback))dlsym(library, name) : NULL;
	struct callback callback = {
		.start = start, .end = end, .probability = 1.0, .needs_inputs = with_inputs};

	memset(callback.scopes, true, sizeof(callback.scopes));
	if (!add)
		return -1;
	add(callback);
	return 0;
}
