/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A tool within a program that gives a CUDA device work: it subscribes to CUPTI's callbacks by
 * itself, and prints what it received. Built without CUDA's headers and libraries, which are found
 * at run time. cuda_client WHEN HOW
 *
 *	WHEN	"before" or "after" the driver is started
 *	HOW	"symbol": CUPTI as a program finds it that is linked with it; "dlsym": opened by the tool
 */
#include <stdbool.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/lib/need.h"

enum { DRIVER = 1, RESOURCE = 3, N_DOMAINS = 8, N_IDS = 2048, TAKEN = 39, N_ROUNDS = 3 };
enum { CONTEXT_CREATED = 1, MODULE_LOADED = 6 };

/* As CUpti_CallbackData. */
struct call {
	int site;
	const char *function;
	const void *parameters, *result;
	const char *symbol;
	void *context;
	uint32_t context_id;
	uint64_t *slot;
	uint32_t correlation;
};

/* As CUpti_SubscriberParams. */
struct parameters {
	size_t n_bytes;
	const char *name;
	char *old_name;
	size_t old_name_bytes;
};

typedef void callback(void *data, int domain, uint32_t id, const void *call);

/* FUNCTION(name, parameters): of libcupti.so.13 */
#define FUNCTIONS                                                                       \
	FUNCTION(cuptiSubscribe, (void **subscriber, callback *call, void *data))       \
	FUNCTION(cuptiSubscribe_v2,                                                     \
		 (void **subscriber, callback *call, void *data, struct parameters *p)) \
	FUNCTION(cuptiUnsubscribe, (void *subscriber))                                  \
	FUNCTION(cuptiEnableCallback,                                                   \
		 (uint32_t enable, void *subscriber, int domain, uint32_t id))          \
	FUNCTION(cuptiEnableDomain, (uint32_t enable, void *subscriber, int domain))    \
	FUNCTION(cuptiEnableAllDomains, (uint32_t enable, void *subscriber))            \
	FUNCTION(cuptiGetCallbackState,                                                 \
		 (uint32_t * enable, void *subscriber, int domain, uint32_t id))        \
	FUNCTION(cuptiGetCallbackName, (int domain, uint32_t id, const char **name))

/* DRIVERS(name, parameters): of libcuda.so.1 */
#define DRIVERS                                                                             \
	FUNCTION(cuInit, (unsigned flags))                                                  \
	FUNCTION(cuDeviceGet, (int *device, int ordinal))                                   \
	FUNCTION(cuDevicePrimaryCtxRetain, (void **context, int device))                    \
	FUNCTION(cuCtxSetCurrent, (void *context))                                          \
	FUNCTION(cuModuleLoadData, (void **module, const void *image))                      \
	FUNCTION(cuModuleGetFunction, (void **function, void *module, const char *name))    \
	FUNCTION(cuMemAlloc_v2, (uint64_t * address, size_t n_bytes))                       \
	FUNCTION(cuMemsetD8_v2, (uint64_t at, unsigned char value, size_t n))               \
	FUNCTION(cuCtxSynchronize, (void))                                                  \
	FUNCTION(cuLaunchKernel,                                                            \
		 (void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, \
		  unsigned bz, unsigned shared, void *stream, void **parameters, void **extra))

#define FUNCTION(name, parameters)                        \
	extern int name parameters __attribute__((weak)); \
	static int(*p_##name) parameters;
FUNCTIONS
DRIVERS
#undef FUNCTION

static void *function;
static uint64_t address;

/* What was received, and whether each exit found in its slot what its enter left there. */
static struct received {
	uint64_t n[N_DOMAINS][N_IDS][2], n_lost_slots, n_wrong_data;
} received;

static void receive(void *data, int domain, uint32_t id, const void *what)
{
	const struct call *call = what;

	received.n_wrong_data += data != &received;
	if (domain >= N_DOMAINS || id >= N_IDS)
		return;
	if (domain >= RESOURCE) {
		received.n[domain][id][0]++;
		return;
	}
	received.n[domain][id][call->site]++;
	if (call->site == 0)
		*call->slot = ~(uint64_t)call->correlation;
	else
		received.n_lost_slots += *call->slot != ~(uint64_t)call->correlation;
}

static void print_received(const char *when)
{
	for (int domain = 0; domain < N_DOMAINS; domain++) {
		for (uint32_t id = 0; id < N_IDS; id++) {
			const uint64_t *n = received.n[domain][id];
			const char *name = "?";

			if (!n[0] && !n[1])
				continue;
			p_cuptiGetCallbackName(domain, id, &name);
			printf("%s: domain %d %u %s: %lu %lu\n", when, domain, id, name, n[0],
			       n[1]);
		}
	}
	printf("%s: lost slots %lu, wrong data %lu\n", when, received.n_lost_slots,
	       received.n_wrong_data);
	memset(&received, 0, sizeof(received));
}

static void work(void)
{
	for (int i = 0; i < 5; i++) {
		NEED(p_cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
		NEED(p_cuMemsetD8_v2(address, 1, 100));
	}
	NEED(p_cuCtxSynchronize());
}

static void find(const char *how)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW),
	     *cupti = dlopen("libcupti.so.13", RTLD_NOW);

	if (!driver || !cupti)
		exit(1);
#define FUNCTION(name, parameters) *(void **)&p_##name = dlsym(driver, #name);
	DRIVERS
#undef FUNCTION
#define FUNCTION(name, parameters)                         \
	if (strcmp(how, "symbol"))                         \
		*(void **)&p_##name = dlsym(cupti, #name); \
	else                                               \
		p_##name = name;
	FUNCTIONS
#undef FUNCTION
}

static void start_driver(void)
{
	void *context, *module;
	int device;

	NEED(p_cuInit(0));
	NEED(p_cuDeviceGet(&device, 0));
	NEED(p_cuDevicePrimaryCtxRetain(&context, device));
	NEED(p_cuCtxSetCurrent(context));
	NEED(p_cuModuleLoadData(&module, "code"));
	NEED(p_cuModuleGetFunction(&function, module, "_Z4workPf"));
	NEED(p_cuMemAlloc_v2(&address, 4096));
}

static uint32_t id_of(const char *wanted)
{
	const char *name;

	for (uint32_t id = 0; id < N_IDS; id++)
		if (!p_cuptiGetCallbackName(DRIVER, id, &name) && !strcmp(name, wanted))
			return id;
	exit(1);
}

static void print_state(void *subscriber, uint32_t id)
{
	uint32_t is_on = 7;

	NEED(p_cuptiGetCallbackState(&is_on, subscriber, DRIVER, id));
	printf("state %u\n", is_on);
}

/* Everything that a subscriber does, with work in between. */
static void listen_to(void *subscriber)
{
	uint32_t launch = id_of("cuLaunchKernel"), wait = id_of("cuCtxSynchronize");

	work();
	print_received("nothing");
	NEED(p_cuptiEnableCallback(1, subscriber, DRIVER, wait));
	print_state(subscriber, wait);
	print_state(subscriber, launch);
	work();
	print_received("wait");
	NEED(p_cuptiEnableCallback(1, subscriber, DRIVER, launch));
	work();
	print_received("wait and launch");
	NEED(p_cuptiEnableCallback(0, subscriber, DRIVER, launch));
	print_state(subscriber, launch);
	work();
	print_received("wait again");
	NEED(p_cuptiEnableDomain(1, subscriber, DRIVER));
	work();
	print_received("domain");
	NEED(p_cuptiEnableDomain(0, subscriber, DRIVER));
	work();
	print_received("no domain");
	NEED(p_cuptiEnableAllDomains(1, subscriber));
	work();
	print_received("all");
	NEED(p_cuptiEnableAllDomains(0, subscriber));
	work();
	print_received("none");
	NEED(p_cuptiEnableCallback(1, subscriber, DRIVER, launch));
}

static void *subscribe(void)
{
	void *subscriber = NULL, *second = NULL;
	char old_name[64] = "";
	struct parameters p = {.n_bytes = sizeof(p),
			       .name = "the client",
			       .old_name = old_name,
			       .old_name_bytes = sizeof(old_name)};

	NEED(p_cuptiSubscribe_v2(&subscriber, receive, &received, &p));
	printf("subscribed\n");
	p.name = "a second one";
	printf("second: %d, taken by %s\n", p_cuptiSubscribe_v2(&second, receive, &received, &p),
	       old_name);
	return subscriber;
}

int main(int argc, char **argv)
{
	bool is_before = argc > 1 && !strcmp(argv[1], "before");
	void *subscriber = NULL;

	find(argc > 2 ? argv[2] : "symbol");
	if (!is_before)
		start_driver();
	subscriber = subscribe();
	if (is_before)
		start_driver();
	for (int i = 0; i < N_ROUNDS; i++) {
		listen_to(subscriber);
		NEED(p_cuptiUnsubscribe(subscriber));
		work();
		print_received("unsubscribed");
		printf("stale: %d\n", p_cuptiEnableCallback(1, subscriber, DRIVER, 1));
		NEED(p_cuptiSubscribe(&subscriber, receive, &received));
	}
	return 0;
}
