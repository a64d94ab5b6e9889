/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A CUPTI client that requests what the agent requests and discards it: the cost of CUPTI itself.
 * The driver loads it through CUDA_INJECTION64_PATH.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "shim/cuda/cupti.h"

#define BUFFER_BYTES (1u << 20) /* as the agent's */
#define N_CALLS 2048u

int InitializeInjection(void);

static struct cupti_functions cupti;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *spares; /* each begins with the address of the next */

static void request(uint8_t **buffer, size_t *n_bytes, size_t *n_records)
{
	pthread_mutex_lock(&lock);
	*buffer = spares;
	if (spares)
		spares = *(void **)spares;
	pthread_mutex_unlock(&lock);
	if (!*buffer)
		*buffer = malloc(BUFFER_BYTES);
	*n_bytes = BUFFER_BYTES;
	*n_records = 0;
}

/* Going over the records is a call of CUPTI's for each. */
static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t n_bytes,
		     size_t n_valid)
{
	struct cupti_record *record = NULL;

	(void)context;
	(void)stream;
	(void)n_bytes;
	while (!cupti.ActivityGetNextRecord(buffer, n_valid, &record))
		;
	pthread_mutex_lock(&lock);
	*(void **)(void *)buffer = spares;
	spares = buffer;
	pthread_mutex_unlock(&lock);
}

static void at_callback(void *unused, int domain, uint32_t id, const void *data)
{
	(void)unused;
	(void)domain;
	(void)id;
	(void)data;
}

static void watch(void *subscriber, int domain)
{
	static const char *const parts[] = {"Launch", "Memcpy", "Memset", "Synchronize",
					    "Stream", "Malloc", "Alloc"};

	for (uint32_t id = 1; id < N_CALLS; id++) {
		const char *name = NULL;

		if (cupti.GetCallbackName(domain, id, &name) || !name)
			continue;
		for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
			if (strstr(name, parts[i]))
				cupti.EnableCallback(1, subscriber, domain, id);
	}
}

int InitializeInjection(void)
{
	static const int kinds[] = {CUPTI_KIND_KERNEL, CUPTI_KIND_COPY,	  CUPTI_KIND_PEER_COPY,
				    CUPTI_KIND_MEMSET, CUPTI_KIND_DEVICE, CUPTI_KIND_CONTEXT,
				    CUPTI_KIND_STREAM, CUPTI_KIND_WAIT,	  CUPTI_KIND_OVERHEAD};
	void *library = dlopen("libcupti.so.13", RTLD_NOW), *subscriber;

	if (!library)
		return 0;
#define CUPTI(Name, parameters) *(void **)&cupti.Name = dlsym(library, "cupti" #Name);
#define CUPTI_OPTIONAL(Name, parameters) CUPTI(Name, parameters)
#include "shim/cuda/cupti.def"
#undef CUPTI
#undef CUPTI_OPTIONAL
	cupti.ActivityRegisterCallbacks(request, complete);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		cupti.ActivityEnable(kinds[i]);
	if (!cupti.Subscribe(&subscriber, at_callback, NULL)) {
		watch(subscriber, CUPTI_DOMAIN_DRIVER);
		watch(subscriber, CUPTI_DOMAIN_RUNTIME);
	}
	cupti.ActivityFlushPeriod(1000);
	return 1;
}
