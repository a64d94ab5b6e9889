/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A second subscriber to CUPTI's callbacks in this process, while the agent has the only
 * subscription: it gets a shadow subscription, which receives the callbacks that it enabled, with
 * its own data and its own slot for each call.
 */
#include "collectors/cuda/cupti/cuda_shadow.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "agent/process/callbacks.h"
#include "collectors/cuda/cuda.h"
#include "shim/cuda/cupti.h"

#define N_DOMAINS 8u
#define SLOTS_MAX 32u /* nested calls */

enum enabler { BY_US = 1, BY_SHADOW = 2 };

static void *subscription; /* CUPTI's, held by the agent; set before any callback */
static _Atomic uint8_t enabled[N_DOMAINS][CUPTI_CALLS_MAX]; /* enum enabler */

static struct shadow {
	_Atomic uint32_t is_taken;
	cupti_callback *_Atomic call; /* NULL: no subscriber */
	void *data;
	char name[CUPTI_OLD_NAME_BYTES];
} shadow;

/* The shadow's data from the enter of a call to its exit. */
struct slot {
	const uint64_t *call; /* CUPTI's slot of that call, unique among open calls */
	uint64_t value;
};

static _Thread_local struct slot slots[SLOTS_MAX];
static _Thread_local uint32_t n_slots;

static bool is_listed(int domain, uint32_t id)
{
	return domain >= 0 && (uint32_t)domain < N_DOMAINS && id < CUPTI_CALLS_MAX;
}

static bool is_enabled(int domain, uint32_t id, enum enabler by)
{
	return is_listed(domain, id) &&
	       atomic_load_explicit(&enabled[domain][id], memory_order_relaxed) & by;
}

/*
 * CUPTI is called when the first subscriber enables a callback, and when the last one disables it.
 */
static int set(int domain, uint32_t id, enum enabler by, bool is_on)
{
	uint8_t before;
	int result = CUPTI_DONE;

	if (is_on)
		result = torsh_cupti.EnableCallback(1, subscription, domain, id);
	if (result)
		return result;
	before = is_on ? atomic_fetch_or_explicit(&enabled[domain][id], (uint8_t)by,
						  memory_order_relaxed)
		       : atomic_fetch_and_explicit(&enabled[domain][id], (uint8_t)~by,
						   memory_order_relaxed);
	if (!is_on && before == by)
		result = torsh_cupti.EnableCallback(0, subscription, domain, id);
	return result;
}

void torsh_cuda_subscribed(void *subscriber)
{
	subscription = subscriber;
}

int torsh_cuda_watch_callback(int domain, uint32_t id)
{
	return is_listed(domain, id) ? set(domain, id, BY_US, 1) : -1;
}

bool torsh_cuda_is_watched(int domain, uint32_t id)
{
	return is_enabled(domain, id, BY_US);
}

/* ---- calling back ---------------------------------------------------------------------------- */

static struct slot *open_slot(const uint64_t *call)
{
	/* Exits of calls may be missing, if the callback was disabled meanwhile. */
	if (n_slots == SLOTS_MAX)
		n_slots = 0;
	slots[n_slots] = (struct slot){.call = call};
	return &slots[n_slots++];
}

static struct slot *close_slot(const uint64_t *call)
{
	static _Thread_local struct slot none;

	for (uint32_t i = n_slots; i; i--) {
		if (slots[i - 1].call != call)
			continue;
		n_slots = i - 1;
		return &slots[n_slots];
	}
	none = (struct slot){0};
	return &none;
}

static void call_shadow(cupti_callback *call, int domain, uint32_t id, const void *data)
{
	/*
	 * Its own slot replaces CUPTI's during the call: the struct can't be copied, it has more
	 * fields in later versions.
	 */
	struct cupti_call *api = (struct cupti_call *)data;
	uint64_t *slot;

	if ((domain != CUPTI_DOMAIN_DRIVER && domain != CUPTI_DOMAIN_RUNTIME) || !api->slot) {
		call(shadow.data, domain, id, data);
		return;
	}
	slot = api->slot;
	api->slot = api->site == CUPTI_ENTER ? &open_slot(slot)->value : &close_slot(slot)->value;
	call(shadow.data, domain, id, data);
	api->slot = slot;
}

void torsh_cuda_call_shadow(int domain, uint32_t id, const void *data)
{
	/* Pairs with the release in subscribe. */
	cupti_callback *call = atomic_load_explicit(&shadow.call, memory_order_acquire);

	if (__builtin_expect(call && is_enabled(domain, id, BY_SHADOW), 0))
		call_shadow(call, domain, id, data);
}

/* ---- the other subscriber's calls ------------------------------------------------------------ */

static int subscribe(void **subscriber, cupti_callback *call, void *data, const char *name)
{
	if (!subscriber || !call)
		return CUPTI_INVALID_PARAMETER;
	if (atomic_exchange_explicit(&shadow.is_taken, 1, memory_order_acquire))
		return CUPTI_SUBSCRIBER_TAKEN;
	strncpy(shadow.name, name ? name : "", sizeof(shadow.name) - 1);
	shadow.data = data;
	atomic_store_explicit(&shadow.call, call, memory_order_release);
	*subscriber = &shadow;
	return CUPTI_DONE;
}

int torsh_cuda_tee_Subscribe(void **subscriber, cupti_callback *call, void *data)
{
	torsh_callbacks.device_client_subscribes();
	return torsh_cuda_is_live() ? subscribe(subscriber, call, data, NULL) : -1;
}

int torsh_cuda_tee_Subscribe_v2(void **subscriber, cupti_callback *call, void *data,
				struct cupti_subscriber_parameters *parameters)
{
	int result;

	torsh_callbacks.device_client_subscribes();
	if (!torsh_cuda_is_live())
		return -1;
	if (!parameters || !parameters->n_bytes)
		return CUPTI_INVALID_PARAMETER;
	result = subscribe(subscriber, call, data, parameters->name);
	if (result == CUPTI_SUBSCRIBER_TAKEN && parameters->old_name &&
	    parameters->old_name_bytes) {
		strncpy(parameters->old_name, shadow.name, parameters->old_name_bytes - 1);
		parameters->old_name[parameters->old_name_bytes - 1] = '\0';
	}
	return result;
}

/* Whether this is the shadow. CUPTI handles, and rejects, all others. */
static bool is_shadow(const void *subscriber)
{
	return subscriber == &shadow && torsh_cuda_is_live() &&
	       atomic_load_explicit(&shadow.call, memory_order_relaxed);
}

static void disable_domain(int domain)
{
	for (uint32_t id = 0; id < CUPTI_CALLS_MAX; id++)
		if (is_enabled(domain, id, BY_SHADOW))
			set(domain, id, BY_SHADOW, 0);
}

/* An id that CUPTI rejects stays disabled. */
static int enable_domain(int domain)
{
	int n_enabled = 0;

	for (uint32_t id = 0; id < CUPTI_CALLS_MAX; id++)
		n_enabled += !set(domain, id, BY_SHADOW, 1);
	return n_enabled ? CUPTI_DONE : CUPTI_INVALID_PARAMETER;
}

int torsh_cuda_tee_Unsubscribe(void *subscriber)
{
	if (!is_shadow(subscriber))
		return -1;
	for (int domain = 1; domain < (int)N_DOMAINS; domain++)
		disable_domain(domain);
	atomic_store_explicit(&shadow.call, NULL, memory_order_relaxed);
	/* Pairs with the acquire in subscribe. */
	atomic_store_explicit(&shadow.is_taken, 0, memory_order_release);
	return CUPTI_DONE;
}

int torsh_cuda_tee_EnableCallback(uint32_t enable, void *subscriber, int domain, uint32_t id)
{
	if (!is_shadow(subscriber))
		return -1;
	return is_listed(domain, id) ? set(domain, id, BY_SHADOW, enable != 0)
				     : CUPTI_INVALID_PARAMETER;
}

int torsh_cuda_tee_EnableDomain(uint32_t enable, void *subscriber, int domain)
{
	if (!is_shadow(subscriber))
		return -1;
	if (domain <= 0 || domain >= (int)N_DOMAINS)
		return CUPTI_INVALID_PARAMETER;
	if (enable)
		return enable_domain(domain);
	disable_domain(domain);
	return CUPTI_DONE;
}

int torsh_cuda_tee_EnableAllDomains(uint32_t enable, void *subscriber)
{
	if (!is_shadow(subscriber))
		return -1;
	for (int domain = 1; domain < (int)N_DOMAINS; domain++)
		torsh_cuda_tee_EnableDomain(enable, subscriber, domain);
	return CUPTI_DONE;
}

int torsh_cuda_tee_GetCallbackState(uint32_t *is_on, void *subscriber, int domain, uint32_t id)
{
	if (!is_shadow(subscriber))
		return -1;
	if (!is_on || !is_listed(domain, id))
		return CUPTI_INVALID_PARAMETER;
	*is_on = is_enabled(domain, id, BY_SHADOW) != 0;
	return CUPTI_DONE;
}
