/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/threads/keep/keeps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/base/memory.h"
#include "tools/writer/output/copy_path.h"
#include "tools/writer/threads/end_exports.h"

#define TEXT_BYTES 400u
#define KEPT_NOTE "kept as "
#define GONE_NOTE "copies that gave their places to later ones: "
#define SETTLED_NS UINT64_C(500000000) /* after a copy: the rings may be full still */

struct keep_command {
	pid_t child;
	uint32_t process; /* number of the target */
	char *path;
	struct keep_command *next;
};

static pid_t start_command(const struct target *target, const char *path, bool has_stacks)
{
	char pid[16];
	const char *arguments[] = {
		"torsh", "snapshot", pid, "-o", path, has_stacks ? "--stacks" : NULL, NULL};
	posix_spawn_file_actions_t actions;
	pid_t child;

	snprintf(pid, sizeof(pid), "%d", (int)target->pid);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	child = torsh_end_exports_start(arguments, &actions);
	posix_spawn_file_actions_destroy(&actions);
	return child;
}

/* Returns 0 or -errno. */
static int begin(struct keeps *keeps, struct target *target, bool has_stacks, const char *text)
{
	char *path = torsh_copy_path(keeps->recording_path, "kept", keeps->n_kept + 1);
	struct keep_command *command;
	pid_t child;

	if (!path)
		return -EACCES;
	child = start_command(target, path, has_stacks);
	if (child < 0) {
		torsh_process_state_note(&target->state, "%s could not be written: %s", path,
					 strerror(-child));
		free(path);
		return child;
	}
	/* The copy has the note, too: this thread has not answered the command yet. */
	torsh_process_state_note(&target->state, KEPT_NOTE "%s: %s", path, text);
	command = torsh_memory_new(1, sizeof(*command));
	*command = (struct keep_command){
		.child = child, .process = target->number, .path = path, .next = keeps->first};
	keeps->first = command;
	keeps->n_kept++;
	return 0;
}

static void forget_notes(struct target *const *targets, uint32_t n_targets, const char *beginning)
{
	for (uint32_t i = 0; i < n_targets; i++)
		torsh_process_state_forget_note(&targets[i]->state, beginning);
}

/*
 * Copies that nobody requested give their places to later ones. They need no notes any more, and a
 * run of weeks has more of them than a process has notes: one has their number.
 */
static void drop_oldest(struct keeps *keeps, struct target *const *targets, uint32_t n_targets)
{
	char note[PROCESS_STATE_NOTE_BYTES];

	while (n_targets && keeps->n_unasked - keeps->n_dropped > KEEPS_MAX) {
		uint32_t number = keeps->unasked[keeps->n_dropped++ % KEEPS_ROOM];
		char *path = torsh_copy_path(keeps->recording_path, "kept", number);

		if (!path)
			continue;
		snprintf(note, sizeof(note), KEPT_NOTE "%s: ", path);
		forget_notes(targets, n_targets, note);
		if (!unlink(path)) {
			forget_notes(targets, n_targets, GONE_NOTE);
			torsh_process_state_note(&targets[0]->state, GONE_NOTE "%" PRIu32,
						 ++keeps->n_gone);
		}
		free(path);
	}
}

/* Returns as torsh_keeps_keep. */
static int keep(struct keeps *keeps, struct target *target, enum keep_cause cause, const char *text)
{
	/* A copy that waited for its turn has the stacks of then, too. */
	int result = begin(keeps, target, target->state.has_hung, text);

	if (result)
		return result;
	keeps->last_ns = torsh_clock_monotonic_ns();
	/* A copy that finds no room stays. */
	if (cause != KEEP_REQUESTED && keeps->n_unasked - keeps->n_dropped < KEEPS_ROOM)
		keeps->unasked[keeps->n_unasked++ % KEEPS_ROOM] = keeps->n_kept;
	if (keeps->peers && cause != KEEP_BY_PEER)
		torsh_keep_peers_announce(keeps->peers, text);
	return (int)keeps->n_kept;
}

static bool is_too_soon(const struct keeps *keeps)
{
	uint64_t apart_ns =
		keeps->span_ns / 2 < KEEPS_APART_NS ? keeps->span_ns / 2 : KEEPS_APART_NS;

	return keeps->last_ns && torsh_clock_monotonic_ns() - keeps->last_ns < apart_ns;
}

int torsh_keeps_keep(struct keeps *keeps, struct target *target, enum keep_cause cause,
		     const char *format, ...)
{
	char text[TEXT_BYTES];
	va_list arguments;

	if (cause != KEEP_REQUESTED && !keeps->is_on)
		return 0;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (cause == KEEP_REQUESTED || !is_too_soon(keeps))
		return keep(keeps, target, cause, text);
	free(keeps->pending);
	keeps->pending = torsh_memory_text(text);
	keeps->pending_process = target->number;
	keeps->pending_cause = cause;
	return 0;
}

static void keep_pending(struct keeps *keeps, struct target *const *targets, uint32_t n_targets)
{
	struct target *target = n_targets ? targets[0] : NULL;

	if (!keeps->pending || !target || is_too_soon(keeps))
		return;
	for (uint32_t i = 0; i < n_targets; i++) {
		if (targets[i]->number == keeps->pending_process)
			target = targets[i];
	}
	keep(keeps, target, keeps->pending_cause, keeps->pending);
	free(keeps->pending);
	keeps->pending = NULL;
}

/* ---- causes ---------------------------------------------------------------------------------- */

static bool may_hang(const struct keeps *keeps, const struct target *target)
{
	const struct process_state *state = &target->state;

	return keeps->is_on && keeps->limits.hang_ns && state->pace.n >= 2 && !state->has_exited &&
	       !state->has_hung;
}

uint64_t torsh_keeps_next_ns(const struct keeps *keeps, const struct target *target,
			     uint64_t now_ns, uint64_t session_ns)
{
	uint64_t at_ns = target->state.pace.begin_ns + keeps->limits.hang_ns;

	if (!may_hang(keeps, target))
		return UINT64_MAX;
	return at_ns > session_ns ? now_ns + (at_ns - session_ns) : now_ns;
}

void torsh_keeps_check(struct keeps *keeps, struct target *target, uint64_t now_ns,
		       uint64_t session_ns)
{
	struct step_pace *pace = &target->state.pace;

	if (torsh_keeps_is_busy(keeps))
		keeps->busy_until_ns = session_ns + SETTLED_NS;
	if (pace->has_slow && pace->slow.begin_ns < keeps->busy_until_ns) {
		pace->has_slow = false;
	} else if (pace->has_slow) {
		pace->has_slow = false;
		torsh_keeps_keep(
			keeps, target, KEEP_SEEN,
			"step %" PRIu64
			" of process %d took %.4g ms, and the median of the %u before %.4g ms",
			pace->slow.ordinal, (int)target->pid, (double)pace->slow.ns / 1e6,
			pace->slow.ordinal < STEP_PACE_STEPS ? (uint32_t)pace->slow.ordinal
							     : STEP_PACE_STEPS,
			(double)pace->slow.median_ns / 1e6);
	}
	if (torsh_keeps_next_ns(keeps, target, now_ns, session_ns) > now_ns)
		return;
	target->state.has_hung = true;
	torsh_keeps_keep(keeps, target, KEEP_SEEN,
			 "process %d began no step for %.4g s, after %" PRIu64 " steps",
			 (int)target->pid, (double)(session_ns - pace->begin_ns) / 1e9, pace->n);
}

/* ---- commands under way ---------------------------------------------------------------------- */

static void note_failure(const struct keep_command *command, struct target *const *targets,
			 uint32_t n_targets)
{
	for (uint32_t i = 0; i < n_targets; i++) {
		if (targets[i]->number == command->process)
			torsh_process_state_note(&targets[i]->state, "%s could not be written",
						 command->path);
	}
}

static void take_announced(struct keeps *keeps, struct target *const *targets, uint32_t n_targets)
{
	char *announced = n_targets ? torsh_keep_peers_take(keeps->peers) : NULL;
	const char *problem = n_targets ? torsh_keep_peers_problem(keeps->peers) : NULL;

	if (announced)
		torsh_keeps_keep(keeps, targets[0], KEEP_BY_PEER, "another rank kept a copy: %s",
				 announced);
	if (problem)
		torsh_process_state_note(&targets[0]->state, "%s", problem);
	free(announced);
}

void torsh_keeps_poll(struct keeps *keeps, struct target *const *targets, uint32_t n_targets)
{
	struct keep_command **next = &keeps->first;
	int status;

	if (keeps->peers)
		take_announced(keeps, targets, n_targets);
	keep_pending(keeps, targets, n_targets);
	drop_oldest(keeps, targets, n_targets);
	while (*next) {
		struct keep_command *command = *next;

		if (waitpid(command->child, &status, WNOHANG) != command->child) {
			next = &command->next;
			continue;
		}
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			note_failure(command, targets, n_targets);
		*next = command->next;
		free(command->path);
		free(command);
	}
}

bool torsh_keeps_is_busy(const struct keeps *keeps)
{
	return keeps->first != NULL;
}

void torsh_keeps_destroy(struct keeps *keeps)
{
	while (keeps->first) {
		struct keep_command *command = keeps->first;

		keeps->first = command->next;
		while (waitpid(command->child, NULL, 0) < 0 && errno == EINTR)
			;
		free(command->path);
		free(command);
	}
	free(keeps->pending);
	torsh_keep_peers_stop(keeps->peers);
}
