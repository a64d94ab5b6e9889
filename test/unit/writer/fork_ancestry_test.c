/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Whose fork a process is, and what it inherited: also when pids come back, and when parents are
 * gone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test/unit/fixtures/channel_fixture.h"
#include "tools/writer/input/fork_ancestry.h"

#define PARENT 100u
#define CHILD 200u

/* A process: its channel, its only thread, and what the writer has of it. */
struct image {
	struct fake_channel channel;
	struct fake_thread thread;
	struct target *target;
};

static struct fork_ancestry ancestry;

static int end_lineage(void **state)
{
	(void)state;
	torsh_fork_ancestry_destroy(&ancestry);
	return 0;
}

/* parent may be NULL. */
static void begin(struct image *image, uint32_t pid, uint64_t start_ticks,
		  const struct image *parent)
{
	const struct clock_conversion clock = {0};

	fake_channel_create(&image->channel, 1);
	image->channel.header->pid = pid;
	image->channel.header->start_ticks = start_ticks;
	if (parent) {
		image->channel.header->forked_from = parent->channel.header->pid;
		image->channel.header->forked_from_ticks = parent->channel.header->start_ticks;
	}
	assert_int_equal(
		torsh_target_create(&image->target, dup(image->channel.fd), (pid_t)pid, -1), 0);
	image->target->number = ancestry.n + 1;
	torsh_target_begin(image->target, &clock, NULL);
	torsh_fork_ancestry_begin(&ancestry, image->target);
	fake_thread_open(&image->thread, &image->channel, 0, pid, 0);
}

static void fold(const struct image *image)
{
	torsh_target_drain(image->target, 1, UINT64_MAX);
}

static void put_fork(struct image *image, uint64_t stamp, uint32_t child)
{
	const struct event fork = {.id = EVENT_FORK, .fork = {.child = child}};

	fake_begin(&image->thread);
	fake_commit_cold(&image->thread, stamp, &fork);
	fold(image);
}

static void end(struct image *image)
{
	torsh_fork_ancestry_end(&ancestry, image->target);
	torsh_target_destroy(image->target);
	fake_channel_destroy(&image->channel);
}

static void expect_inherited(const struct image *image, uint64_t blocks, uint64_t bytes)
{
	const struct inheritance *inheritance = &image->target->inheritance;

	assert_true(inheritance->is_settled);
	assert_true(inheritance->has_blocks);
	assert_true(inheritance->has_bytes);
	assert_int_equal(inheritance->blocks, blocks);
	assert_int_equal(inheritance->bytes, bytes);
}

static void a_fork_inherits_what_its_parent_had_then(void **state)
{
	struct image parent, child;

	(void)state;
	begin(&parent, PARENT, 1, NULL);
	fake_alloc(&parent.thread, 1, 0x1000, 30, 1);
	fake_alloc(&parent.thread, 2, 0x2000, 12, 1);
	begin(&child, CHILD, 2, &parent);
	assert_int_equal(child.target->parent_number, 1);
	torsh_fork_ancestry_inherit(&ancestry, child.target);
	assert_true(torsh_fork_ancestry_is_pending(child.target));
	put_fork(&parent, 3, CHILD);
	fake_free(&parent.thread, 4, 0x1000);
	fold(&parent);
	torsh_fork_ancestry_inherit(&ancestry, child.target);
	expect_inherited(&child, 2, 42);
	end(&child);
	end(&parent);
}

static void who_is_no_fork_inherits_nothing(void **state)
{
	struct image image;

	(void)state;
	begin(&image, PARENT, 1, NULL);
	assert_int_equal(image.target->parent_number, 0);
	assert_false(torsh_fork_ancestry_is_pending(image.target));
	assert_false(image.target->inheritance.is_fork);
	end(&image);
}

static void a_parent_that_ended_before_the_childs_hello_is_found(void **state)
{
	struct image parent, child;

	(void)state;
	begin(&parent, PARENT, 1, NULL);
	fake_alloc(&parent.thread, 1, 0x1000, 30, 1);
	put_fork(&parent, 3, CHILD);
	begin(&child, CHILD, 2, &parent);
	end(&parent);
	torsh_fork_ancestry_inherit(&ancestry, child.target);
	expect_inherited(&child, 1, 30);
	end(&child);
}

static void a_parent_that_was_killed_within_the_fork_leaves_it_unknown(void **state)
{
	struct image parent, child;

	(void)state;
	begin(&parent, PARENT, 1, NULL);
	fake_alloc(&parent.thread, 1, 0x1000, 30, 1);
	begin(&child, CHILD, 2, &parent);
	end(&parent);
	torsh_fork_ancestry_inherit(&ancestry, child.target);
	assert_false(torsh_fork_ancestry_is_pending(child.target));
	assert_false(child.target->inheritance.has_blocks);
	assert_int_equal(child.target->parent_number, 1);
	end(&child);
}

static void a_fork_of_a_fork_inherits_from_both(void **state)
{
	struct image parent, child, grandchild, late;

	(void)state;
	begin(&parent, PARENT, 1, NULL);
	fake_alloc(&parent.thread, 1, 0x1000, 30, 1);
	fake_alloc(&parent.thread, 2, 0x2000, 12, 1);
	begin(&child, CHILD, 2, &parent);
	fake_alloc(&child.thread, 4, 0x3000, 5, 1);
	put_fork(&child, 5, 300);
	begin(&grandchild, 300, 3, &child);
	torsh_fork_ancestry_inherit(&ancestry, grandchild.target);
	assert_true(torsh_fork_ancestry_is_pending(grandchild.target));
	put_fork(&parent, 3, CHILD);
	torsh_fork_ancestry_inherit(&ancestry, child.target);
	torsh_fork_ancestry_inherit(&ancestry, grandchild.target);
	expect_inherited(&grandchild, 3, 47);
	/* One of the inherited is freed: its size is lost. */
	fake_free(&child.thread, 6, 0x2000);
	put_fork(&child, 7, 400);
	begin(&late, 400, 4, &child);
	torsh_fork_ancestry_inherit(&ancestry, late.target);
	assert_true(late.target->inheritance.has_blocks);
	assert_int_equal(late.target->inheritance.blocks, 2);
	assert_false(late.target->inheritance.has_bytes);
	end(&late);
	end(&grandchild);
	end(&child);
	end(&parent);
}

/*
 * Two images had the pid, of two processes or of one that called exec: a fork is of the one that it
 * names.
 */
static void pids_that_come_back_lead_to_the_right_parent(void **state)
{
	struct image first, second, of_first, of_second;

	(void)state;
	begin(&first, PARENT, 1, NULL);
	fake_alloc(&first.thread, 1, 0x1000, 30, 1);
	put_fork(&first, 2, CHILD);
	begin(&second, PARENT, 9, NULL);
	begin(&of_first, CHILD, 10, &first);
	fake_alloc(&second.thread, 1, 0x1000, 70, 1);
	put_fork(&second, 2, CHILD);
	begin(&of_second, CHILD, 11, &second);
	torsh_fork_ancestry_inherit(&ancestry, of_second.target);
	torsh_fork_ancestry_inherit(&ancestry, of_first.target);
	assert_int_equal(of_first.target->parent_number, 1);
	assert_int_equal(of_second.target->parent_number, 2);
	expect_inherited(&of_first, 1, 30);
	expect_inherited(&of_second, 1, 70);
	end(&of_second);
	end(&of_first);
	end(&second);
	end(&first);
}

int main(void)
{
#define LINEAGE_TEST(name) cmocka_unit_test_teardown(name, end_lineage)
	const struct CMUnitTest tests[] = {
		LINEAGE_TEST(a_fork_inherits_what_its_parent_had_then),
		LINEAGE_TEST(who_is_no_fork_inherits_nothing),
		LINEAGE_TEST(a_parent_that_ended_before_the_childs_hello_is_found),
		LINEAGE_TEST(a_parent_that_was_killed_within_the_fork_leaves_it_unknown),
		LINEAGE_TEST(a_fork_of_a_fork_inherits_from_both),
		LINEAGE_TEST(pids_that_come_back_lead_to_the_right_parent),
	};
#undef LINEAGE_TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
