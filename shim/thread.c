/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/thread.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

#include "shim/sys.h"

#define STACK_BYTES (1u << 20) /* of address space; what is called in other libraries decides how much is touched */

int torsh_thread_start(void *(*run)(void *), void *argument)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;
	int error = pthread_attr_init(&attributes);

	if (error)
		return -error;
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	/* The C library leaves out the signals by which its setuid reaches all threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&thread, &attributes, run, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return -error;
}

void torsh_thread_name(const char *name)
{
	TORSH_SYS(SYS_prctl, PR_SET_NAME, name, 0, 0, 0, 0);
}
