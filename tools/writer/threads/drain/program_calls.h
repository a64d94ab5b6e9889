/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The writer's side of agent/session/writer_call.h: calls that programs make by torsh.h. A call
 * becomes an internal request, so that it is answered in its turn, at a moment to which the
 * process is folded; file_calls.h has those that write a file.
 */
#ifndef TORSH_WRITER_THREADS_DRAIN_PROGRAM_CALLS_H
#define TORSH_WRITER_THREADS_DRAIN_PROGRAM_CALLS_H

#include <stdbool.h>

#include "tools/writer/input/target.h"
#include "tools/writer/threads/request_queue.h"

/* Copy the call that the target waits for. Returns false if there is none; each is taken once. */
bool torsh_program_call_take(struct target *target, struct program_call *call);

/* Create the request of a call, which torsh_program_call_answer or _reply answers. */
struct queued_request *torsh_program_call_queue(const struct program_call *call);

/* Answer the call from the target's heap, which is folded to the request's moment. */
void torsh_program_call_answer(struct target *target, const struct program_call *call);

/* Answer the call with this result, without figures. */
void torsh_program_call_reply(struct target *target, const struct program_call *call, int result);

#endif
