/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls about memory, from CUPTI's callbacks. The runtime implements its calls by driver calls:
 * of these only those that load code are sent.
 */
#include "collectors/cuda/memory/cuda_memory_callbacks.h"

#include <stdatomic.h>

#include "agent/wire/event.h"
#include "collectors/cuda/memory/cuda_memory_events.h"
#include "shim/cuda/cupti.h"

#define N_CONTEXTS 1024u

/* of calls; filled in before any callback */
static uint8_t numbers[CUPTI_N_API_DOMAINS][CUPTI_CALLS_MAX];
/* the device's number + 1; 0: not queried */
static _Atomic uint8_t devices_of_contexts[N_CONTEXTS];

bool torsh_cuda_memory_wants(int domain, uint32_t id, const char *name, size_t length)
{
	if (domain >= CUPTI_N_API_DOMAINS || id >= CUPTI_CALLS_MAX)
		return 0;
	numbers[domain][id] = (uint8_t)torsh_cuda_memory_find(name, length);
	return numbers[domain][id] != 0;
}

static uint32_t number_of(int domain, uint32_t id)
{
	return domain < CUPTI_N_API_DOMAINS && id < CUPTI_CALLS_MAX ? numbers[domain][id] : 0;
}

static uint32_t device_of_context(const struct cupti_call *call)
{
	_Atomic uint8_t *known = call->context_id && call->context_id < N_CONTEXTS
					 ? &devices_of_contexts[call->context_id]
					 : NULL;
	uint32_t device = known ? atomic_load_explicit(known, memory_order_relaxed) : 0;

	if (device)
		return device - 1;
	if (!torsh_cupti.GetDeviceId || torsh_cupti.GetDeviceId(call->context, &device))
		return DEVICE_NOT_KNOWN;
	if (known && device < UINT8_MAX)
		atomic_store_explicit(known, (uint8_t)(device + 1), memory_order_relaxed);
	return device;
}

void torsh_cuda_memory_enter(int domain, uint32_t id, const struct cupti_call *call, bool is_inner)
{
	uint32_t number = number_of(domain, id);
	bool is_of_code = number && torsh_cuda_memory_is_of_code(number);

	if (number && (is_of_code || !is_inner))
		torsh_cuda_memory_begins(
			number,
			&(struct cuda_memory_call){.parameters = call->parameters,
						   .context = call->context_id,
						   .device = is_of_code ? device_of_context(call)
									: DEVICE_NOT_KNOWN});
}

void torsh_cuda_memory_exit(int domain, uint32_t id, const struct cupti_call *call, bool is_inner,
			    const void *frame)
{
	uint32_t number = number_of(domain, id);
	int result = call->result ? *(const int *)call->result : 0;

	if (number && (!is_inner || torsh_cuda_memory_is_of_code(number)))
		torsh_cuda_memory_ends(
			number,
			&(struct cuda_memory_call){.parameters = call->parameters,
						   .context = call->context_id,
						   .device = device_of_context(call)},
			result, frame);
}

void torsh_cuda_memory_context_destroyed(void *context)
{
	uint32_t number;

	if (torsh_cupti.GetContextId && !torsh_cupti.GetContextId(context, &number))
		torsh_cuda_memory_context_ends(number);
}
