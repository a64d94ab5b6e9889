/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The functions of CUPTI through which another client in this process, such as PyTorch's Kineto,
 * would take over the records: CUPTI has one client's callbacks, and clients disable each other's
 * activities. While the agent is attached it serves the client from its own records
 * (collectors/cuda/cupti/cuda_tee.c, collectors/cuda/cupti/cuda_shadow.c); otherwise each call goes
 * to CUPTI.
 */
#include "shim/cuda/cupti.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "shim/cuda/driver.h"
#include "shim/hooks.h"
#include "shim/loader/objects.h"
#include "shim/loader/symbol.h"

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

/*
 * TEE(Name, parameters, arguments): torsh_cuda_tee_Name returns the client's result, or -1: pass
 * the call on
 */
#define TEE(Name, parameters, arguments)                              \
	EXPORT int cupti##Name parameters;                            \
	EXPORT int cupti##Name parameters                             \
	{                                                             \
		static void *_Atomic next;                            \
		int result = torsh_cuda_tee_##Name arguments;         \
		int(*call) parameters;                                \
                                                                      \
		if (result >= 0)                                      \
			return result;                                \
		*(void **)&call = find_next(&next, "cupti" #Name);    \
		return call ? call arguments : CUPTI_NOT_INITIALIZED; \
	}

/* TEES: all of them as TEE(Name, parameters, arguments) */
#define TEES                                                                                 \
	TEE(ActivityRegisterCallbacks, (cupti_request * request, cupti_complete * complete), \
	    (request, complete))                                                             \
	TEE(ActivityRegisterTimestampCallback, (cupti_clock * clock), (clock))               \
	TEE(ActivityEnable, (int kind), (kind))                                              \
	TEE(ActivityDisable, (int kind), (kind))                                             \
	TEE(ActivityFlushAll, (uint32_t flags), (flags))                                     \
	TEE(Finalize, (void), ())                                                            \
	TEE(Subscribe, (void **subscriber, cupti_callback *back, void *data),                \
	    (subscriber, back, data))                                                        \
	TEE(Subscribe_v2,                                                                    \
	    (void **subscriber, cupti_callback *back, void *data,                            \
	     struct cupti_subscriber_parameters *parameters),                                \
	    (subscriber, back, data, parameters))                                            \
	TEE(Unsubscribe, (void *subscriber), (subscriber))                                   \
	TEE(EnableCallback, (uint32_t enable, void *subscriber, int domain, uint32_t id),    \
	    (enable, subscriber, domain, id))                                                \
	TEE(EnableDomain, (uint32_t enable, void *subscriber, int domain),                   \
	    (enable, subscriber, domain))                                                    \
	TEE(EnableAllDomains, (uint32_t enable, void *subscriber), (enable, subscriber))     \
	TEE(GetCallbackState, (uint32_t * is_on, void *subscriber, int domain, uint32_t id), \
	    (is_on, subscriber, domain, id))
TEES
#undef TEE

	/* ---- look-up by name ----------------------------------------------------------------- */

	static const struct tee {
	const char *name;
	void *ours;
} tees[] = {
#define TEE(Name, parameters, arguments) {"cupti" #Name, (void *)cupti##Name},
	TEES
#undef TEE
};

static const struct tee *find_tee(const char *name)
{
	for (size_t i = 0; i < sizeof(tees) / sizeof(*tees); i++)
		if (!strcmp(tees[i].name, name))
			return &tees[i];
	return NULL;
}

bool torsh_cupti_has(const char *name)
{
	return !strncmp(name, "cupti", sizeof("cupti") - 1) && find_tee(name);
}

bool torsh_cupti_lacks(const char *name)
{
	return !torsh_objects_find(name);
}

/* A tool with its own copy of CUPTI is served like one that is linked with CUPTI. */
void *torsh_cupti_instead(const char *name, void *found)
{
	const struct tee *tee = find_tee(name);

	if (found != tee->ours)
		return found && torsh_cuda_interposes_driver() &&
				       torsh_objects_lies_in("/libcupti.so", found)
			       ? tee->ours
			       : found;
	return torsh_cupti_lacks(name) ? torsh_symbol(RTLD_NEXT, name) : found;
}
