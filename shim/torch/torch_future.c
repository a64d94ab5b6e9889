/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Waits of libtorch's own code for a c10d::Work. DistributedDataParallel does not call Work::wait:
 * its reducer waits for the work's c10::ivalue::Future, by code that is inlined, for a condition
 * variable in the future. So the work reports its future, and libtorch's references to
 * std::condition_variable::wait lead to a wrapper. Those of all other objects stay.
 */
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "shim/find_text.h"
#include "shim/hooks.h"
#include "shim/loader/bindings.h"
#include "shim/loader/objects.h"

/* The result is an intrusive_ptr, whose place is passed otherwise on other processors. */
#if defined(__x86_64__)
#define CONDITION_WAIT "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE"
#define GET_FUTURE "_ZN4c10d16ProcessGroupGloo9AsyncWork9getFutureEv"

static void (*_Atomic next_wait)(void *, void *);
static _Atomic bool is_bound;

static uint64_t monotonic_ns(void)
{
	struct timespec now = {0};

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Holds nothing during the wait, which a cancellation may leave. */
static void wait_for_condition(void *condition, void *lock)
{
	uint32_t number = torsh_torch_future_waits(condition);
	uint64_t begin_ns = number ? monotonic_ns() : 0;

	atomic_load_explicit(&next_wait, memory_order_relaxed)(condition, lock);
	if (number)
		torsh_torch_future_waited(number, begin_ns);
}

static int find_call(const char *name)
{
	return strcmp(name, CONDITION_WAIT) == 0 ? 0 : -1;
}

static void *bound_to(int i)
{
	(void)i;
	return torsh_objects_find(CONDITION_WAIT);
}

/* All objects of libtorch have the same one. */
static void *wrapper_of(int i, void *found)
{
	void *wrapper;

	(void)i;
	*(void (**)(void *, void *)) & wrapper = wait_for_condition;
	if (found && found != wrapper)
		atomic_store_explicit(&next_wait, *(void (**)(void *, void *)) & found,
				      memory_order_relaxed);
	return found ? wrapper : NULL;
}

static bool is_other_object(const struct torsh_elf_image *image, const void *dynamic,
			    const char *path)
{
	(void)image;
	(void)dynamic;
	return !torsh_find_text(path, "/libtorch_cpu") &&
	       !torsh_find_text(path, "/libtorch_python");
}

static int bind_object(struct dl_phdr_info *object, size_t n_bytes, void *context)
{
	static const struct bindings bindings = {.find = find_call,
						 .bound = bound_to,
						 .instead = wrapper_of,
						 .skips = is_other_object};

	(void)n_bytes;
	(void)context;
	torsh_bindings_change(object, true, &bindings);
	return 0;
}

EXPORT void *torsh_work_get_future(void **future, void *work) __asm__(GET_FUTURE);
void *torsh_work_get_future(void **future, void *work)
{
	static void *_Atomic known;
	void *found = atomic_load_explicit(&known, memory_order_relaxed);
	void *(*next)(void **, void *);

	if (!found) {
		found = torsh_objects_find(GET_FUTURE);
		atomic_store_explicit(&known, found, memory_order_relaxed);
	}
	*(void **)&next = found;
	next(future, work);
	/* In a forked child the loader's lock may have no holder any more. */
	if (torsh_torch_work_future(work, *future) && !torsh_objects_is_forked_child() &&
	    !atomic_exchange(&is_bound, true))
		dl_iterate_phdr(bind_object, NULL);
	return future;
}
#endif
