/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The address-space collector: what the program maps, unmaps and moves. A call that frees addresses
 * is stamped before it runs and sent after it succeeded; the ring stays busy in between, so that
 * the writer waits for it.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/process/config.h"
#include "agent/producer/producer.h"
#include "shim/hooks.h"
#include "shim/libc/next.h"
#include "shim/sys.h"

static inline __attribute__((always_inline)) struct producer *enter(void)
{
	return torsh_config.activities & ACTIVITY_VM ? torsh_producer_enter() : NULL;
}

static const void *stack_of(const void *frame)
{
	return torsh_config.with_stack ? frame : NULL;
}

/* Send an event stamped now. */
static inline __attribute__((always_inline)) void record(const struct event *event,
							 const void *frame)
{
	int saved = errno;
	struct producer *producer = enter();

	if (producer) {
		torsh_producer_event(producer, event, stack_of(frame));
		torsh_producer_leave(producer);
	}
	errno = saved;
}

void torsh_vm_mapped(void *at, size_t n_bytes, int prot, int flags, int fd, off_t offset,
		     const void *frame)
{
	struct event event = {
		.id = EVENT_MAP,
		.map =
			{
				.address = (uintptr_t)at,
				.length = n_bytes,
				.protection = (uint32_t)prot,
				.flags = (uint32_t)flags,
				.descriptor = flags & MAP_ANONYMOUS ? -1 : fd,
				.offset = (uint64_t)offset,
			},
	};

	record(&event, frame);
}

/* The size is the segment's; one that this process may not read the state of has none. */
void torsh_vm_attached(void *at, int id, const void *frame)
{
	struct shmid_ds state;
	struct event event = {
		.id = EVENT_MAP,
		.map =
			{
				.address = (uintptr_t)at,
				.flags = MAP_SHARED | MAP_OF_SYSTEM_V,
				.descriptor = id,
			},
	};

	if (TORSH_SYS(SYS_shmctl, id, IPC_STAT, &state, 0, 0, 0) == 0)
		event.map.length = state.shm_segsz;
	record(&event, frame);
}

/* An event that is stamped before the call that it reports. */
struct held {
	struct producer *producer; /* NULL: not recorded */
	uint64_t stamp;
};

static inline __attribute__((always_inline)) struct held hold(const void *frame)
{
	struct held held = {.producer = enter()};

	if (held.producer && !torsh_producer_hold(held.producer, stack_of(frame), &held.stamp)) {
		torsh_producer_leave(held.producer);
		held.producer = NULL;
	}
	return held;
}

static void let_go(struct held *held, const struct event *event, int happened)
{
	int saved = errno;

	if (!held->producer)
		return;
	if (happened)
		torsh_producer_event_at(held->producer, event, held->stamp);
	else
		torsh_producer_release(held->producer);
	torsh_producer_leave(held->producer);
	errno = saved;
}

int torsh_vm_unmap(void *at, size_t n_bytes)
{
	struct event event = {.id = EVENT_UNMAP,
			      .unmap = {.address = (uintptr_t)at, .length = n_bytes}};
	struct held held = hold(NULL);
	int result = torsh_next.munmap(at, n_bytes);

	let_go(&held, &event, result == 0);
	return result;
}

int torsh_vm_detach(const void *at)
{
	struct event event = {.id = EVENT_UNMAP,
			      .unmap = {.address = (uintptr_t)at, .length = UNMAP_OF_SYSTEM_V}};
	struct held held = hold(NULL);
	int result = torsh_next.shmdt(at);

	let_go(&held, &event, result == 0);
	return result;
}

void *torsh_vm_remap(void *at, size_t old_bytes, size_t n_bytes, int flags, void *wanted,
		     const void *frame)
{
	struct held held = hold(frame);
	void *p = torsh_next.mremap(at, old_bytes, n_bytes, flags, wanted);
	struct event event = {
		.id = EVENT_REMAP,
		.remap =
			{
				.old_address = (uintptr_t)at,
				.old_length = old_bytes,
				.address = (uintptr_t)p,
				.length = n_bytes,
				.flags = (uint32_t)flags,
			},
	};

	let_go(&held, &event, p != MAP_FAILED);
	return p;
}

static void record_break(uintptr_t old_break, uintptr_t new_break, const void *frame)
{
	struct event event = {
		.id = EVENT_PROGRAM_BREAK,
		.program_break = {.old_break = old_break, .new_break = new_break},
	};

	if (old_break != new_break)
		record(&event, frame);
}

int torsh_vm_break(void *to, const void *frame)
{
	uintptr_t before = (uintptr_t)torsh_next.sbrk(0);
	int result = torsh_next.brk(to);

	if (!result)
		record_break(before, (uintptr_t)to, frame);
	return result;
}

void *torsh_vm_move_break(intptr_t by, const void *frame)
{
	void *before = torsh_next.sbrk(by);

	if (before != (void *)-1)
		record_break((uintptr_t)before, (uintptr_t)before + (uintptr_t)by, frame);
	return before;
}

/* Other advice changes nothing that is recorded. */
void torsh_vm_advised(void *at, size_t n_bytes, int advice)
{
	struct event event = {
		.id = EVENT_ADVISE,
		.advise = {.address = (uintptr_t)at, .length = n_bytes, .advice = advice},
	};

	if (advice == MADV_DONTNEED || advice == MADV_FREE)
		record(&event, NULL);
}
