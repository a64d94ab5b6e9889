/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A wrapper for each function in which a thread waits, or that ends waits. It leaves nothing behind
 * that an unwinder would have to release: a cancellation, an exception or a jump may end the call
 * within.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/types.h>

#include "shim/hooks.h"
#include "shim/libc/next.h"
#include "shim/loader/objects.h"
#include "shim/loader/symbol.h"
#include "shim/waits/wait_calls.h"

/* A trial has no wrapper of its own. */
static struct {
#define WAIT(result, name, kind, parameters, ...) result(*name) parameters;
#define TRIED(name, trial, kind, parameters, ...) int(*name) parameters, (*trial)parameters;
#define WAKE(name, whom) int (*name)(void *object);
#include "shim/waits/wait_calls.def"
#undef WAIT
#undef TRIED
} next;

static int (*next_getvalue)(void *, int *); /* sem_getvalue; NULL: there is none */

#define WAIT(result, name, kind, parameters, arguments, object)                   \
	static result wrap_##name parameters                                      \
	{                                                                         \
		struct wait_hook hook;                                            \
		result returned;                                                  \
                                                                                  \
		torsh_wait_begins(&hook, THREAD_WAIT_##kind, (uint64_t)(object)); \
		returned = next.name arguments;                                   \
		torsh_wait_ends(&hook, (long)returned, HOOK_FRAME);               \
		return returned;                                                  \
	}
/* Whoever does not have to wait pays for a call of the trial, which makes the same transition. */
#define TRIED(name, trial, kind, parameters, arguments, object)                   \
	static int wrap_##name parameters                                         \
	{                                                                         \
		struct wait_hook hook;                                            \
		int returned = next.trial arguments;                              \
                                                                                  \
		if (__builtin_expect(returned != EBUSY, 1))                       \
			return returned;                                          \
		torsh_wait_begins(&hook, THREAD_WAIT_##kind, (uint64_t)(object)); \
		returned = next.name arguments;                                   \
		torsh_wait_ends(&hook, returned, HOOK_FRAME);                     \
		return returned;                                                  \
	}
/* Whoever waits for the mutex may get it from now on. */
#define RELEASING(name, kind, parameters, arguments, object, released)            \
	static int wrap_##name parameters                                         \
	{                                                                         \
		struct wait_hook hook;                                            \
		int returned;                                                     \
                                                                                  \
		torsh_wait_wakes((uint64_t)(released), WAKE_NEXT_OWNER);          \
		torsh_wait_begins(&hook, THREAD_WAIT_##kind, (uint64_t)(object)); \
		returned = next.name arguments;                                   \
		torsh_wait_ends(&hook, returned, HOOK_FRAME);                     \
		return returned;                                                  \
	}
/*
 * Whoever posted before the call may have seen no waiter. A trial would not do: it takes no
 * cancellation.
 */
static void look_for_posts(struct wait_hook *hook, void *semaphore)
{
	int value;

	if (hook->wake)
		hook->is_free = !next_getvalue || next_getvalue(semaphore, &value) || value > 0;
}

#define COUNTING(name, parameters, arguments, object)                              \
	static int wrap_##name parameters                                          \
	{                                                                          \
		struct wait_hook hook;                                             \
		int returned;                                                      \
                                                                                   \
		torsh_wait_begins(&hook, THREAD_WAIT_SEMAPHORE, (uint64_t)object); \
		look_for_posts(&hook, object);                                     \
		returned = next.name arguments;                                    \
		torsh_wait_ends(&hook, returned, HOOK_FRAME);                      \
		return returned;                                                   \
	}
/* Before the call: after it the waiter may have gone on. */
#define WAKE(name, whom)                                         \
	static int wrap_##name(void *object)                     \
	{                                                        \
		torsh_wait_wakes((uint64_t)object, WAKE_##whom); \
		return next.name(object);                        \
	}
#include "shim/waits/wait_calls.def"
#undef WAIT
#undef TRIED

/* Names without pointers to them, which would be a relocation each. */
static const struct {
#define WAIT(result, name, ...) char name[sizeof(#name)];
#define TRIED(name, trial, ...) char name[sizeof(#name)], trial_of_##name[sizeof(#trial)];
#define WAKE(name, whom) char name[sizeof(#name)];
#include "shim/waits/wait_calls.def"
#undef WAIT
#undef TRIED
} names = {
#define WAIT(result, name, ...) #name,
#define TRIED(name, trial, ...) #name, #trial,
#define WAKE(name, whom) #name,
#include "shim/waits/wait_calls.def"
#undef WAIT
#undef TRIED
};

/* Places in names and in next; without a trial both of that are 0. */
static const struct {
	void *wrapper;
	uint16_t name_at, trial_name_at, next_at, trial_at;
} functions[N_WAITS_FUNCTIONS] = {
#define WAIT(result, name, ...)                                         \
	[WAITS_##name] = {.wrapper = (void *)wrap_##name,               \
			  .name_at = offsetof(__typeof__(names), name), \
			  .next_at = offsetof(__typeof__(next), name)},
#define TRIED(name, trial, ...)                                                          \
	[WAITS_##name] = {.wrapper = (void *)wrap_##name,                                \
			  .name_at = offsetof(__typeof__(names), name),                  \
			  .trial_name_at = offsetof(__typeof__(names), trial_of_##name), \
			  .next_at = offsetof(__typeof__(next), name),                   \
			  .trial_at = offsetof(__typeof__(next), trial)},
#define WAKE(name, whom) WAIT(int, name)
#include "shim/waits/wait_calls.def"
#undef WAIT
#undef TRIED
};

static const char *name_of(int i)
{
	return (const char *)&names + functions[i].name_at;
}

static void **next_place(int i)
{
	return (void **)((char *)&next + functions[i].next_at);
}

/* The agent's own function of that name, which calls the next one; NULL: it exports none. */
static void *find_own(const char *name)
{
	void *first = torsh_symbol(RTLD_DEFAULT, name);

	return first && torsh_objects_of(first) == torsh_objects_of((void *)&torsh_waits_find)
		       ? first
		       : NULL;
}

/*
 * On x86-64 the condition variables of programs that were linked before 2003 have another layout:
 * an unversioned look-up may find their functions. A look-up that fails would leave an error for
 * the program's dlerror.
 */
static void *find(const char *name)
{
	void *found = find_own(name);

	if (found)
		return found;
	if (!torsh_objects_find(name) || torsh_next_is_defined_before(name))
		return NULL;
#if defined(__x86_64__)
	if (!strncmp(name, "pthread_cond_", strlen("pthread_cond_")) &&
	    strcmp(name, "pthread_cond_clockwait"))
		found = dlvsym(RTLD_NEXT, name, TORSH_WAITS_CONDITION_VERSION);
#endif
	return found ? found : torsh_symbol(RTLD_NEXT, name);
}

/* Without what the program defines itself: references bind to that. */
static bool find_next(int i)
{
	void *found = find(name_of(i)), *trial;

	if (found && functions[i].trial_at) {
		trial = find((const char *)&names + functions[i].trial_name_at);
		/* A tool that defines only one of them is not bypassed. */
		if (!trial || torsh_objects_of(trial) != torsh_objects_of(found))
			return false;
		memcpy((char *)&next + functions[i].trial_at, &trial, sizeof(trial));
	}
	*next_place(i) = found;
	return found;
}

/* ---- names ----------------------------------------------------------------------------------- */

#define NAMES 512u /* a power of two, several times the number of functions */

static uint8_t by_name[NAMES]; /* number + 1; 0: free */

_Static_assert(N_WAITS_FUNCTIONS < 128, "numbers and free places fit");

static uint32_t hash_of(const char *name)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (; *name; name++)
		hash = (hash ^ (uint8_t)*name) * 16777619u;
	return hash ^ hash >> 16;
}

void torsh_waits_find(void)
{
	void *getvalue = find("sem_getvalue");

	memcpy(&next_getvalue, &getvalue, sizeof(getvalue));
	for (int i = 0; i < N_WAITS_FUNCTIONS; i++) {
		uint32_t at = hash_of(name_of(i));

		if (!find_next(i))
			continue;
		while (by_name[at % NAMES])
			at++;
		by_name[at % NAMES] = (uint8_t)(i + 1);
	}
}

int torsh_waits_number(const char *name)
{
	for (uint32_t at = hash_of(name); by_name[at % NAMES]; at++)
		if (!strcmp(name, name_of(by_name[at % NAMES] - 1)))
			return by_name[at % NAMES] - 1;
	return -1;
}

void *torsh_waits_next(int i)
{
	return *next_place(i);
}

void *torsh_waits_wrapper(int i)
{
	return functions[i].wrapper;
}
