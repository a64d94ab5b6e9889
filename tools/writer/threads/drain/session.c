/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/threads/drain/session.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#define MEASURE_EVERY_NS 100000000u
#define START_AGE_MAX_NS UINT64_C(60000000000) /* an older start of the first target is invalid */

static size_t read_boot(char *out, size_t n)
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n_read = fd < 0 ? -1 : read(fd, out, n);

	if (fd >= 0)
		close(fd);
	return n_read > 0 ? (size_t)n_read : 0;
}

/* Of the kernel's boot, and of the time namespace, which shifts CLOCK_MONOTONIC. */
static uint64_t identify_clock(void)
{
	char text[256];
	size_t n = read_boot(text, 128);
	ssize_t n_link = readlink("/proc/self/ns/time", text + n, sizeof(text) - n);

	if (!n)
		return 0;
	/* Kernels without time namespaces have no link. */
	return XXH64(text, n + (n_link > 0 ? (size_t)n_link : 0), 0);
}

void torsh_session_begin(struct session *session, const struct target *target)
{
	uint64_t now = torsh_clock_monotonic_ns(), start = target->start.start_monotonic_ns;
	struct timespec real;

	session->monotonic_ns = start <= now && now - start < START_AGE_MAX_NS ? start : now;
	clock_gettime(CLOCK_REALTIME, &real);
	session->realtime_ns = (uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec -
			       (now - session->monotonic_ns);
	session->kernel_clock = identify_clock();
	session->ends_with_process_1 = target->pid == 1;
	session->has_begun = true;
}

uint64_t torsh_session_ns(const struct session *session, uint64_t monotonic_ns)
{
	return monotonic_ns > session->monotonic_ns ? monotonic_ns - session->monotonic_ns : 0;
}

struct clock_conversion torsh_session_clock(const struct session *session,
					    const struct target *target)
{
	bool is_tsc = target->start.clock == CHANNEL_CLOCK_TSC;
	const struct clock_rate *rate = &session->rate;
	uint64_t start_ticks = target->start.start_ticks;

	return (struct clock_conversion){
		.rate = is_tsc ? rate : NULL,
		.start_ticks = start_ticks,
		.start_ns = torsh_session_ns(session, target->start.start_monotonic_ns),
		.start_rate_ns = is_tsc ? torsh_clock_rate_ns(rate, start_ticks + rate->lift) : 0,
		.start_monotonic_ns = target->start.start_monotonic_ns,
		.base = rate->lift,
		.lift = &target->view.header->clock_lift,
	};
}

static void note_jump(const struct clock_measurement *measured, struct target *const *targets,
		      uint32_t n_targets)
{
	const char *what = measured->jump == CLOCK_JUMP_BACK ? "was set back" : "jumped ahead";

	for (uint32_t i = 0; i < n_targets; i++) {
		struct process_state *state = &targets[i]->state;

		if (!state->clock.rate)
			continue;
		if (measured->suspended_ns)
			torsh_process_state_note(
				state,
				"the processor's counter %s when the machine was suspended, for %.1f s, which the "
				"times leave out; those of events right after it may be some milliseconds off",
				what, (double)measured->suspended_ns / 1e9);
		else
			torsh_process_state_note(
				state,
				"the processor's counter %s, as when a virtual machine moves; times of "
				"events right after that may be some milliseconds off",
				what);
	}
}

void torsh_session_measure(struct session *session, struct target *const *targets,
			   uint32_t n_targets)
{
	struct clock_measurement measured = torsh_clock_rate_measure(&session->rate);

	if (measured.jump != CLOCK_JUMP_NONE)
		note_jump(&measured, targets, n_targets);
	for (uint32_t i = 0; i < n_targets; i++) {
		const struct clock_conversion *clock = &targets[i]->state.clock;

		if (clock->rate)
			torsh_clock_rate_publish(&session->rate, clock->base,
						 &targets[i]->view.header->clock_reference);
	}
}

void torsh_session_measure_if_due(struct session *session, uint64_t now_ns,
				  struct target *const *targets, uint32_t n_targets)
{
	if (now_ns - session->last_measure_ns <= MEASURE_EVERY_NS)
		return;
	torsh_session_measure(session, targets, n_targets);
	session->last_measure_ns = now_ns;
}

void torsh_session_write(const struct session *session, const struct pauses *pauses,
			 struct recording_file *file)
{
	struct rows_session row = {
		.start_realtime_ns = session->realtime_ns,
		.record = session->record,
		.kernel_clock = session->kernel_clock,
		.start_monotonic_ns = session->monotonic_ns,
		.without_flops = session->without_flops,
		.ends_with_process_1 = session->ends_with_process_1,
	};

	torsh_pauses_put(pauses, session->monotonic_ns, &row);
	torsh_rows_session(file, &row);
	torsh_pauses_release(&row);
}

struct rows_session torsh_session_snapshot(const struct session *session,
					   const struct pauses *pauses, uint64_t taken_ns)
{
	struct rows_session row = {
		.start_realtime_ns = session->realtime_ns,
		.record = session->record,
		.kernel_clock = session->kernel_clock,
		.start_monotonic_ns = session->monotonic_ns,
		.without_flops = session->without_flops,
		.recording = session->recording_path,
		.taken_ns = taken_ns,
	};

	torsh_pauses_put(pauses, session->monotonic_ns, &row);
	return row;
}
