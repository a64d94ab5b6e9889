/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The writer's side of agent/session/writer_call.h: calls that programs make by torsh.h. A call
 * becomes an internal request, so that it is answered in its turn, at a moment to which the
 * process is folded.
 */
#ifndef TORSH_WRITER_THREADS_DRAIN_PROGRAM_CALLS_H
#define TORSH_WRITER_THREADS_DRAIN_PROGRAM_CALLS_H

#include "tools/writer/input/target.h"
#include "tools/writer/threads/request_queue.h"

/* Returns a request for the call that the target waits for, or NULL. Each call gets one. */
struct queued_request *torsh_program_call_take(struct target *target);

/* Answer the call from the target's heap, which is folded to the request's moment. */
void torsh_program_call_answer(struct target *target, const struct program_call *call);

/* Answer the call with this result, without figures. */
void torsh_program_call_reply(struct target *target, const struct program_call *call, int result);

#endif
