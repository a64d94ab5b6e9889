/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Opens each given library by itself (RTLD_LOCAL), and calls its `say`; threads at a time. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#define N_LIBRARIES 8

static pthread_barrier_t barrier;

static void *let_say(void *entry)
{
	pthread_barrier_wait(&barrier);
	((void (*)(void))entry)();
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[N_LIBRARIES];
	int n = argc - 1;

	pthread_barrier_init(&barrier, NULL, (unsigned)n);
	for (int i = 0; i < n && i < N_LIBRARIES; i++) {
		void *library = dlopen(argv[i + 1], RTLD_NOW | RTLD_LOCAL);
		void *entry = library ? dlsym(library, "say") : NULL;

		if (!entry) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		pthread_create(&threads[i], NULL, let_say, entry);
	}
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
