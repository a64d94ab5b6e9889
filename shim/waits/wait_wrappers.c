/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A wrapper for each function in which a thread waits, or that ends waits. It leaves nothing behind
 * that an unwinder would have to release: a cancellation, an exception or a jump may end the call
 * within.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "shim/hooks.h"
#include "shim/libc/next.h"
#include "shim/loader/objects.h"
#include "shim/loader/symbol.h"
#include "shim/sys.h"
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
/*
 * Whether the calling thread is the one for which all others wait at the barrier: what the C
 * library counts there, since 2.23, and the check that this one does. It isn't known of two that
 * arrive at once, before either of them has been counted.
 */
struct barrier {
	_Atomic uint32_t n_arrived;
	uint32_t current_round;
	uint32_t count;
};

static bool knows_barriers;

static bool is_last(const struct barrier *barrier)
{
	return knows_barriers && barrier->count > 1 &&
	       atomic_load_explicit(&barrier->n_arrived, memory_order_acquire) % barrier->count ==
		       barrier->count - 1;
}

/*
 * The name of a file that the program's own writes make readable: a pipe, which has two ends, and
 * an eventfd, whose descriptor stands for it, as all of these have the same inode. Nothing is asked
 * of a file system: a status of NFS's would have to flush what was written.
 */
static uint64_t file_of(int fd)
{
	struct statx status;

	if (TORSH_SYS(SYS_statx, fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO,
		      &status, 0))
		return 0;
	if (S_ISFIFO(status.stx_mode))
		return WAKE_FILE |
		       (((uint64_t)status.stx_dev_minor << 32 ^ status.stx_ino) % (WAKE_FILE >> 1));
	return status.stx_mode & S_IFMT ? 0 : WAKE_FILE | WAKE_FILE >> 1 | (uint32_t)fd;
}

/* Returns whether a call with these would not wait, or fail. */
static bool is_ready(struct pollfd *fds)
{
	static const struct timespec none;

	return TORSH_SYS(SYS_ppoll, fds, 1, &none, NULL, 0, 0) != 0;
}

/* Whoever wrote before the wait was entered may have seen no waiter. */
static void await_input(struct wait_hook *hook, struct pollfd *fds)
{
	uint64_t file;

	if (!torsh_wait_is_likely(hook) || is_ready(fds) || !(fds->events & POLLIN))
		return;
	file = file_of(fds->fd);
	if (!file)
		return;
	torsh_wait_awaits(hook, file);
	hook->is_free = is_ready(fds);
}

static void begin_reading(struct wait_hook *hook, int fd)
{
	struct pollfd fds = {.fd = fd, .events = POLLIN};

	torsh_wait_begins(hook, THREAD_WAIT_READ, (uint64_t)fd);
	await_input(hook, &fds);
}

static void begin_polling(struct wait_hook *hook, struct pollfd *fds, unsigned long n)
{
	torsh_wait_begins(hook, THREAD_WAIT_POLL, 0);
	/* Of several the one that ends the wait has no name. */
	if (n == 1)
		await_input(hook, fds);
}

static void begin_writing(struct wait_hook *hook, int fd)
{
	uint64_t file = torsh_wait_n_files ? file_of(fd) : 0;

	if (file)
		torsh_wait_wakes(file, WAKE_ALL);
	torsh_wait_begins(hook, THREAD_WAIT_WRITE, (uint64_t)fd);
}

#define ARRIVING(name, parameters, arguments, object)                            \
	static int wrap_##name parameters                                        \
	{                                                                        \
		struct wait_hook hook;                                           \
		int returned;                                                    \
                                                                                 \
		if (is_last(object))                                             \
			torsh_wait_wakes((uint64_t)object, WAKE_ALL);            \
		torsh_wait_begins(&hook, THREAD_WAIT_BARRIER, (uint64_t)object); \
		returned = next.name arguments;                                  \
		torsh_wait_ends(&hook, returned, HOOK_FRAME);                    \
		return returned;                                                 \
	}
#define POLLING(name, parameters, arguments)                                        \
	static int wrap_##name parameters                                           \
	{                                                                           \
		struct wait_hook hook;                                              \
		int returned;                                                       \
                                                                                    \
		begin_polling(&hook, fds, n);                                       \
		returned = next.name arguments;                                     \
		/* Of one that nobody writes to any more, nobody ended the wait. */ \
		if (hook.wake && !(((struct pollfd *)fds)->revents & POLLIN))       \
			hook.is_free = true;                                        \
		torsh_wait_ends(&hook, returned, HOOK_FRAME);                       \
		return returned;                                                    \
	}
#define READING(result, name, parameters, arguments, fd, is_end)    \
	static result wrap_##name parameters                        \
	{                                                           \
		struct wait_hook hook;                              \
		result returned;                                    \
                                                                    \
		begin_reading(&hook, fd);                           \
		returned = next.name arguments;                     \
		hook.is_free |= is_end;                             \
		torsh_wait_ends(&hook, (long)returned, HOOK_FRAME); \
		return returned;                                    \
	}
#define WRITING(result, name, parameters, arguments, fd)            \
	static result wrap_##name parameters                        \
	{                                                           \
		struct wait_hook hook;                              \
		result returned;                                    \
                                                                    \
		begin_writing(&hook, fd);                           \
		returned = next.name arguments;                     \
		torsh_wait_ends(&hook, (long)returned, HOOK_FRAME); \
		return returned;                                    \
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

static void check_barriers(void)
{
	int (*make)(pthread_barrier_t *, const pthread_barrierattr_t *, unsigned);
	void *found = find("pthread_barrier_init");
	pthread_barrier_t probe;
	const struct barrier *barrier = (const void *)&probe;

	memcpy(&make, &found, sizeof(make));
	memset(&probe, 0xff, sizeof(probe));
	knows_barriers = make && !make(&probe, NULL, 3) && !barrier->n_arrived &&
			 !barrier->current_round && barrier->count == 3;
}

void torsh_waits_find(void)
{
	void *getvalue = find("sem_getvalue");

	memcpy(&next_getvalue, &getvalue, sizeof(getvalue));
	check_barriers();
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
