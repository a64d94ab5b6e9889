/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The functions of CUPTI by which another client in this process, such as PyTorch's Kineto, would take the records from
 * us: CUPTI has one client's callbacks, and what one enables the other disables. While we are attached the client is
 * served from what we get (collectors/cuda_tee.c); else each call goes on to CUPTI.
 */
#include "shim/cupti.h"

#include "shim/hooks.h"
#include "shim/objects.h"

#define CUPTI_NOT_INITIALIZED 15

/* CUPTI's own function, wherever the client finds it. */
static void *find_next(void *_Atomic *known, const char *name)
{
	void *next = atomic_load_explicit(known, memory_order_acquire);

	if (!next) {
		next = torsh_objects_find(name);
		atomic_store_explicit(known, next, memory_order_release);
	}
	return next;
}

/* TEE(Name, parameters, arguments): torsh_cuda_tee_Name returns what the client is told, or -1: the call is to go on */
#define TEE(Name, parameters, arguments)                                        \
	EXPORT int cupti##Name parameters;                                      \
	EXPORT int cupti##Name parameters                                       \
	{                                                                       \
		static void *_Atomic next;                                      \
		int result = torsh_cuda_tee_##Name arguments;                   \
		int(*call) parameters;                                          \
                                                                                \
		if (result >= 0)                                                \
			return result;                                          \
		*(void **)&call = find_next(&next, "cupti" #Name);              \
		return call ? call arguments : CUPTI_NOT_INITIALIZED;           \
	}

TEE(ActivityRegisterCallbacks, (cupti_request * request, cupti_complete *complete), (request, complete))
TEE(ActivityRegisterTimestampCallback, (cupti_clock * clock), (clock))
TEE(ActivityEnable, (int kind), (kind))
TEE(ActivityDisable, (int kind), (kind))
TEE(ActivityFlushAll, (uint32_t flags), (flags))
TEE(Finalize, (void), ())
