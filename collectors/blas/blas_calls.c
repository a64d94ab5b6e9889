/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls of BLAS, LAPACK and the libraries of collectors/blas/libraries, which shim/blas reports. A
 * routine that another one calls on the same thread is a part of it.
 */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "agent/process/config.h"
#include "agent/process/process.h"
#include "agent/producer/label.h"
#include "agent/producer/producer.h"
#include "agent/producer/schedule.h"
#include "collectors/blas/blas_arguments.h"
#include "collectors/blas/blas_time.h"
#include "collectors/blas/libraries/library_call.h"
#include "shim/blas/blas.h"

/*
 * The frame of the routine that the program called, on this thread: routines that it calls are at
 * lower addresses. One that was left by an exception or a jump stays until a call from further up.
 */
static _Thread_local uintptr_t outermost;

static bool is_plan(enum blas_form form)
{
	return form == LIBRARY_FFTW_PLAN || form == LIBRARY_CUFFT_PLAN;
}

/* A plan that a routine makes within another one is kept as well. */
bool torsh_blas_begins(struct blas_frame *frame)
{
	enum blas_form form = frame->slot->name.form;

	if (form == LIBRARY_FFTW_FORGETS || form == LIBRARY_CUFFT_FORGETS) {
		torsh_library_forget_plan(frame);
		return false;
	}
	frame->begin_ns = 0;
	if ((outermost && (uintptr_t)frame < outermost) || !torsh_blas_is_on())
		return is_plan(form);
	if (form <= BLAS_IN_CUBLAS && !torsh_blas_arguments_read(frame))
		return false;
	outermost = (uintptr_t)frame;
	frame->begin_ns = torsh_blas_now_ns();
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

	if (!name->type)
		return label_of(name->routine->name);
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

static inline __attribute__((always_inline)) void send(struct event *event,
						       const struct library_call *call,
						       struct blas_slot *slot, const void *caller)
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
		if (call)
			torsh_library_call_label(call, event);
		torsh_producer_event(producer, event, torsh_config.with_stack ? caller : NULL);
	}
	torsh_producer_leave(producer);
}

static inline __attribute__((always_inline)) void end_routine(const struct blas_frame *frame,
							      const void *caller, uint64_t end_ns)
{
	struct event event = {
		.id = EVENT_LIBRARY_CALL,
		.library_call = {.type = torsh_blas_type(frame),
				 .m = frame->m,
				 .n = frame->n,
				 .k = frame->k,
				 .batch = frame->batch,
				 .letters = frame->letters,
				 .begin = frame->begin_ns,
				 .duration_ns = end_ns - frame->begin_ns},
	};

	send(&event, NULL, frame->slot, caller);
}

/* Apart from BLAS, whose frames are smaller without its texts. */
static __attribute__((noinline)) void end_call(const struct blas_frame *frame, const void *caller,
					       uint64_t end_ns)
{
	struct library_call call;
	struct event event = {
		.id = EVENT_LIBRARY_CALL,
		.library_call = {.begin = frame->begin_ns, .duration_ns = end_ns - frame->begin_ns},
	};

	torsh_library_call_init(&call);
	torsh_library_read(&call, frame);
	if (frame->begin_ns)
		send(&event, &call, frame->slot, caller);
}

void torsh_blas_ends(const struct blas_frame *frame, const void *caller)
{
	int saved = errno;
	uint64_t end_ns = torsh_blas_now_ns();

	if (frame->begin_ns)
		outermost = 0;
	if (frame->slot->name.form <= BLAS_IN_CUBLAS)
		end_routine(frame, caller, end_ns);
	else
		end_call(frame, caller, end_ns);
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
