/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/libc/thread.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

#include "shim/libc/next.h"
#include "shim/sys.h"

/* of address space; the functions called in other libraries decide how much is touched */
#define STACK_BYTES (1u << 20)

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
	/* The C library excludes the signals by which its setuid reaches all threads. */
	sigfillset(&all);
	torsh_next.pthread_sigmask(SIG_SETMASK, &all, &before);
	error = torsh_next.pthread_create(&thread, &attributes, run, argument);
	torsh_next.pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return -error;
}

void torsh_thread_name(const char *name)
{
	TORSH_SYS(SYS_prctl, PR_SET_NAME, name, 0, 0, 0, 0);
}
