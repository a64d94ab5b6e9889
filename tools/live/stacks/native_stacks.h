/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Native stacks of another process's threads, by its modules' unwind information (libdwfl). */
#ifndef TORSH_LIVE_STACKS_NATIVE_STACKS_H
#define TORSH_LIVE_STACKS_NATIVE_STACKS_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NATIVE_FRAMES_MAX 256u

struct native_frame {
	uint64_t address; /* of an instruction of the call */
};

/* Open the modules of the process. Returns NULL and a reason, which is static. */
Dwfl *torsh_native_open(uint32_t pid, const char **reason);

/* Called while a thread is stopped. thread_pointer: pthread_self() on x86-64, else 0. */
typedef void native_look(void *context, uint32_t tid, uint64_t thread_pointer);

/*
 * Stop the thread, take its stack, innermost frame first, call look, and let it go on. Returns the
 * number of frames, and a reason if they don't reach the thread's begin.
 */
size_t torsh_native_take(Dwfl *dwfl, uint32_t tid, struct native_frame frames[NATIVE_FRAMES_MAX],
			 native_look *look, void *context, const char **reason);

#endif
