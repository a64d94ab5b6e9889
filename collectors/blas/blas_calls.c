/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls of BLAS and LAPACK, which shim/blas reports. A routine that another one calls on the same
 * thread is a part of it.
 */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "agent/process/config.h"
#include "agent/process/process.h"
#include "agent/producer/label.h"
#include "agent/producer/producer.h"
#include "agent/producer/schedule.h"
#include "collectors/blas/blas_arguments.h"
#include "shim/blas/blas.h"

/*
 * The frame of the routine that the program called, on this thread: routines that it calls are at
 * lower addresses. One that was left by an exception or a jump stays until a call from further up.
 */
static _Thread_local uintptr_t outermost;

static uint64_t monotonic_ns(void)
{
	struct timespec now = {0};

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool is_on(void)
{
	return atomic_load_explicit(&torsh_agent_state, memory_order_acquire) == AGENT_ON;
}

bool torsh_blas_begins(struct blas_frame *frame)
{
	if ((outermost && (uintptr_t)frame < outermost) || !is_on() ||
	    !torsh_blas_arguments_read(frame))
		return false;
	outermost = (uintptr_t)frame;
	frame->begin_ns = monotonic_ns();
	return true;
}

static uint32_t label_of(const char *text)
{
	return torsh_label(text, strlen(text));
}

/* "dgemm" of all names that it has. */
static uint32_t label_of_routine(const struct blas_name *name)
{
	char text[BLAS_TEXT_BYTES];
	size_t n = strlen(name->routine->name);

	text[0] = name->type;
	memcpy(text + 1, name->routine->name, n);
	return torsh_label(text, n + 1);
}

/* Labels are a process's own; threads that store them at once store the same. */
static const uint32_t *labels_of(struct blas_slot *slot)
{
	uint32_t pid = (uint32_t)torsh_process->pid;

	if (atomic_load_explicit(&slot->labels_pid, memory_order_acquire) == pid)
		return slot->labels;
	slot->labels[BLAS_LABEL_NAME] = label_of(slot->text);
	slot->labels[BLAS_LABEL_ROUTINE] = label_of_routine(&slot->name);
	slot->labels[BLAS_LABEL_LIBRARY] = label_of(slot->library);
	/* Pairs with the acquire above. */
	atomic_store_explicit(&slot->labels_pid, pid, memory_order_release);
	return slot->labels;
}

static inline __attribute__((always_inline)) void send(struct event *event, struct blas_slot *slot,
						       const void *caller)
{
	struct producer *producer = torsh_producer_enter();
	const uint32_t *labels;

	if (!producer)
		return;
	if (torsh_schedule_is_on(producer)) {
		labels = labels_of(slot);
		event->library_call.name = labels[BLAS_LABEL_NAME];
		event->library_call.routine = labels[BLAS_LABEL_ROUTINE];
		event->library_call.library = labels[BLAS_LABEL_LIBRARY];
		torsh_producer_event(producer, event, torsh_config.with_stack ? caller : NULL);
	}
	torsh_producer_leave(producer);
}

void torsh_blas_ends(const struct blas_frame *frame, const void *caller)
{
	int saved = errno;
	struct event event = {
		.id = EVENT_LIBRARY_CALL,
		.library_call = {.type = (uint8_t)frame->slot->name.type,
				 .m = frame->m,
				 .n = frame->n,
				 .k = frame->k,
				 .batch = frame->batch,
				 .letters = frame->letters,
				 .begin = frame->begin_ns,
				 .duration_ns = monotonic_ns() - frame->begin_ns},
	};

	outermost = 0;
	send(&event, frame->slot, caller);
	errno = saved;
}

void torsh_blas_unseen(const char *library)
{
	char sentence[160], *end = sentence;

	end = stpcpy(end, "blas: calls inside ");
	end = stpcpy(end, library);
	stpcpy(end, " are not seen: it takes no routine of BLAS from another library");
	torsh_channel_note(&torsh_process->channel, sentence);
}
