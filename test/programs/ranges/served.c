/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Serves requests on two threads by torsh.h: each round, both are in one at the same time. One of
 * them reports what it does inside as a request, too.
 */
#include <pthread.h>

#include "shim/ranges/torsh.h"

#define N_ROUNDS 20

static pthread_barrier_t barrier;

static void *serve(void *name)
{
	for (int i = 0; i < N_ROUNDS; i++) {
		torsh_request_begin(name);
		pthread_barrier_wait(&barrier);
		if (i % 2) {
			torsh_request_begin("inside");
			torsh_request_end();
		}
		pthread_barrier_wait(&barrier);
		torsh_request_end();
	}
	return NULL;
}

int main(void)
{
	pthread_t other;

	pthread_barrier_init(&barrier, NULL, 2);
	if (pthread_create(&other, NULL, serve, "GET /other"))
		return 1;
	serve("GET /main");
	pthread_join(other, NULL);
	return 0;
}
