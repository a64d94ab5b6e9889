/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Programs that can't be followed: from the events of their parents to the rows that readers get.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "test/unit/fixtures/channel_fixture.h"
#include "tools/recording/read.h"
#include "tools/writer/input/unfollowed.h"
#include "tools/writer/output/rows/rows.h"

#define STARTER 4000000u /* no process has this pid */
#define CHILD 4000001u

static char path[] = "/tmp/torsh-stranger-XXXXXX";
static struct fake_channel channel;
static struct fake_thread thread;
static struct target *target;
static struct fork_ancestry ancestry;
static struct unfollowed_list unfollowed_list;
static struct recording_file *file;
static int fd;

static int start(void **state)
{
	static const struct recording_limits limits;
	const struct clock_conversion clock = {0};

	(void)state;
	strcpy(path + sizeof(path) - sizeof("XXXXXX"), "XXXXXX");
	fd = mkstemp(path);
	file = torsh_recording_create(fd, &limits, 1);
	torsh_rows_session(file, &(struct rows_session){.start_realtime_ns = 1});
	fake_channel_create(&channel, 1);
	channel.header->pid = STARTER;
	channel.header->parent_pid = 17;
	if (torsh_target_create(&target, dup(channel.fd), (pid_t)STARTER, -1))
		return -1;
	target->number = 1;
	torsh_target_begin(target, &clock, NULL);
	torsh_fork_ancestry_begin(&ancestry, target);
	fake_thread_open(&thread, &channel, 0, STARTER, 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	torsh_fork_ancestry_destroy(&ancestry);
	torsh_target_destroy(target);
	fake_channel_destroy(&channel);
	close(fd);
	return unlink(path);
}

static void put_program(uint64_t stamp, uint32_t child, enum program_problem problem,
			const char *text, uint32_t n)
{
	struct channel_text place = n ? fake_text(&channel, text, n) : (struct channel_text){0};
	const struct event event = {
		.id = EVENT_PROGRAM,
		.program = {.child = child,
			    .problem = problem,
			    .text = place.offset,
			    .length = place.length},
	};

	fake_begin(&thread);
	fake_commit_cold(&thread, stamp, &event);
}

static void fail_to_watch(void *context, struct unfollowed *unfollowed)
{
	(void)context;
	fail_msg("process %u is not there to be watched", unfollowed->pid);
}

static void take(void)
{
	torsh_target_drain(target, 1, UINT64_MAX);
	torsh_unfollowed_take(&unfollowed_list, target, fail_to_watch, NULL);
}

/* The session ends: what a reader finds. */
static struct recording *read_rows(void)
{
	char error[512];
	struct recording *recording;

	torsh_unfollowed_end(&unfollowed_list, &ancestry, file);
	torsh_rows_end(file, &(struct rows_end){.is_complete = 1});
	torsh_recording_finish(file);
	recording = torsh_recording_read(path, 0, 0, error, sizeof(error));
	assert_non_null(recording);
	return recording;
}

static void unknown_values_are_absent(void **state)
{
	static const char text[] = "/opt/tool\0\0tool\0--fast";
	const struct recorded_process *row;
	struct recording *recording;

	(void)state;
	put_program(5, CHILD, PROGRAM_FOREIGN, text, sizeof(text));
	put_program(6, CHILD + 1, PROGRAM_STATIC, NULL, 0);
	take();
	recording = read_rows();
	assert_int_equal(recording->n_unfollowed, 2);
	row = recording->unfollowed[0];
	assert_int_equal(row->pid, CHILD);
	assert_int_equal(row->parent_pid, STARTER);
	assert_string_equal(row->program, "/opt/tool");
	assert_int_equal(row->n_arguments, 2);
	assert_string_equal(row->arguments[1], "--fast");
	assert_string_equal(row->not_followed, "it is of another architecture than the agent");
	assert_int_equal(row->end, TORSH__PROCESS__END_KIND__VANISHED);
	assert_false(row->has_end_ns);
	assert_null(recording->unfollowed[1]->program);
	assert_int_equal(recording->unfollowed[1]->n_arguments, 0);
	torsh_recording_destroy(recording);
}

static void a_start_that_failed_leaves_no_row(void **state)
{
	static const char text[] = "/opt/tool\0\0tool";
	struct recording *recording;

	(void)state;
	put_program(5, CHILD, PROGRAM_STATIC, text, sizeof(text));
	take();
	put_program(6, CHILD, PROGRAM_FINE, NULL, 0);
	put_program(7, STARTER, PROGRAM_STATIC, text, sizeof(text));
	put_program(8, STARTER, PROGRAM_FINE, NULL, 0);
	take();
	/* The next one with that pid is another. */
	put_program(9, CHILD, PROGRAM_PRIVILEGED, text, sizeof(text));
	take();
	recording = read_rows();
	assert_int_equal(recording->n_unfollowed, 1);
	assert_non_null(strstr(recording->unfollowed[0]->not_followed, "gains privileges"));
	torsh_recording_destroy(recording);
}

/* Those that find no room are a loss of their parents. */
static void more_than_the_list_has_room_for_are_counted(void **state)
{
	const uint32_t n_room = 65536, n_more = 7;
	static const char text[] = "/opt/tool\0\0tool";
	struct channel_text place = fake_text(&channel, text, sizeof(text));
	uint64_t losses[N_WRITER_LOSSES];
	struct recording *recording;

	(void)state;
	for (uint32_t i = 0; i < n_room + n_more; i++) {
		fake_begin(&thread);
		fake_commit_cold(&thread, i + 1,
				 &(struct event){.id = EVENT_PROGRAM,
						 .program = {.child = CHILD + i,
							     .problem = PROGRAM_STATIC,
							     .text = place.offset,
							     .length = place.length}});
		if (i % 256 == 0)
			take();
	}
	take();
	torsh_target_losses(target, losses);
	assert_int_equal(losses[WRITER_LOSS_programs_unlisted], n_more);
	assert_true(torsh_target_is_lossy(target));
	recording = read_rows();
	assert_int_equal(recording->n_unfollowed, n_room);
	torsh_recording_destroy(recording);
}

static void who_became_one_ends_as_it_does(void **state)
{
	static const char text[] = "/opt/script\0/opt/interpreter\0script";
	const struct recorded_process *row;
	struct recording *recording;

	(void)state;
	put_program(5, STARTER, PROGRAM_STATIC, text, sizeof(text));
	take();
	target->end_monotonic_ns = 70;
	target->wait_status = 9;
	atomic_store(&target->fate, TARGET_DIED);
	torsh_unfollowed_leave(&unfollowed_list, target);
	recording = read_rows();
	assert_int_equal(recording->n_unfollowed, 1);
	row = recording->unfollowed[0];
	assert_int_equal(row->pid, STARTER);
	assert_int_equal(row->parent_pid, 17);
	assert_int_equal(row->executed_from, 1);
	assert_int_equal(row->end, TORSH__PROCESS__END_KIND__SIGNALED);
	assert_int_equal(row->end_code, 9);
	assert_int_equal(row->end_ns, 70);
	assert_non_null(
		strstr(row->not_followed, "its interpreter /opt/interpreter is statically linked"));
	torsh_recording_destroy(recording);
}

/* Its starter may run again, and send the event, long after it. */
static void it_starts_before_it_can_run(void **state)
{
	enum { TICKS = 1 << CHANNEL_STAMP_SHIFT };
	const uint64_t sent[] = {60, 61, 62}, begin[] = {40, 0, 62 * TICKS + 1};
	const uint64_t starts[] = {40, 61 * TICKS, 62 * TICKS};
	struct recording *recording;

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		const struct event event = {
			.id = EVENT_PROGRAM,
			.program = {.child = CHILD + i,
				    .problem = PROGRAM_STATIC,
				    .begin = begin[i]},
		};

		fake_begin(&thread);
		fake_commit_cold(&thread, sent[i], &event);
	}
	take();
	recording = read_rows();
	assert_int_equal(recording->n_unfollowed, 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(recording->unfollowed[i]->start_ns, starts[i]);
	torsh_recording_destroy(recording);
}

/*
 * The other process's data are not trusted: neither the place of the text, nor the kind of problem.
 */
static void damaged_events_do_no_harm(void **state)
{
	const struct event events[] = {
		{.id = EVENT_PROGRAM,
		 .program = {.child = CHILD, .problem = 1, .text = UINT32_MAX - 8, .length = 100}},
		{.id = EVENT_PROGRAM,
		 .program = {.child = CHILD, .problem = 1, .text = 0, .length = UINT32_MAX}},
		{.id = EVENT_PROGRAM, .program = {.child = CHILD, .problem = 0x7fffffff}},
		{.id = EVENT_PROGRAM, .program = {.child = UINT32_MAX, .problem = 2}},
	};
	struct recording *recording;

	(void)state;
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		fake_begin(&thread);
		fake_commit_cold(&thread, 10 + i, &events[i]);
	}
	take();
	recording = read_rows();
	assert_int_equal(recording->n_unfollowed, 4);
	assert_int_equal(recording->n_bad_rows, 0);
	torsh_recording_destroy(recording);
}

int main(void)
{
#define STRANGER_TEST(name) cmocka_unit_test_setup_teardown(name, start, tear_down)
	const struct CMUnitTest tests[] = {
		STRANGER_TEST(unknown_values_are_absent),
		STRANGER_TEST(a_start_that_failed_leaves_no_row),
		STRANGER_TEST(more_than_the_list_has_room_for_are_counted),
		STRANGER_TEST(who_became_one_ends_as_it_does),
		STRANGER_TEST(it_starts_before_it_can_run),
		STRANGER_TEST(damaged_events_do_no_harm),
	};
#undef STRANGER_TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
