/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/thread.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>

typedef int thread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);

int torsh_thread_start(void *(*run)(void *), void *argument)
{
	thread_create *create = NULL;
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, before;
	int result;

	*(void **)&create = dlsym(RTLD_DEFAULT, "pthread_create");
	if (!create)
		return -ENOSYS;
	result = pthread_attr_init(&attributes);
	if (result)
		return -result;
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	/* A new thread has its maker's mask. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	result = create(&thread, &attributes, run, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return -result;
}
