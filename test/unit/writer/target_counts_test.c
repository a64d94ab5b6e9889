/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the agent, the rings or the writer lose is counted, each loss with its cause. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test/unit/fixtures/target_fixture.h"

/* Each is produced and dropped, and has its cause. */
static void what_no_ring_had_is_counted(void **state)
{
	uint64_t losses[N_WRITER_LOSSES];
	struct fake_thread thread;
	struct pair pair;

	(void)state;
	start(&pair);
	fake_thread_open(&thread, &pair.channel, 0, 7, 10);
	fake_alloc(&thread, 20, 0x1000, 8, 1);
	atomic_store(&thread.ring.slot->dropped, 3);
	atomic_store(&pair.channel.header->counters[COUNTER_interrupts_lost], 5);
	atomic_store(&pair.channel.header->counters[COUNTER_shared_stream_lost], 6);
	/* no events */
	atomic_store(&pair.channel.header->counters[COUNTER_threads_without_slot], 2);
	fake_thread_leave(&thread);
	end(&pair, TARGET_DIED);
	assert_int_equal(counts_of(&pair).produced, 15);
	assert_int_equal(counts_of(&pair).delivered, 1);
	assert_int_equal(counts_of(&pair).dropped, 14);
	torsh_target_losses(pair.target, losses);
	assert_int_equal(losses[WRITER_LOSS_ring_full], 3);
	assert_int_equal(losses[WRITER_LOSS_ring_damaged], 0);
	finish(&pair);
}

static void what_the_agent_lost_is_counted(void **state)
{
	const struct event lost = {.id = EVENT_LOST,
				   .lost = {.allocs = 3, .frees = 4, .others = 5}};
	struct fake_thread thread;
	struct pair pair;

	(void)state;
	start(&pair);
	fake_thread_open(&thread, &pair.channel, 0, 1, 0);
	fake_begin(&thread);
	fake_commit_cold(&thread, 1, &lost);
	atomic_store(&thread.ring.slot->dropped, 12);
	fake_thread_leave(&thread);
	end(&pair, TARGET_DIED);
	assert_int_equal(counts_of(&pair).dropped, 12);
	assert_int_equal(counts_of(&pair).delivered, 1);
	assert_int_equal(pair.target->state.lost_allocs, 3);
	assert_int_equal(pair.target->state.lost_frees, 4);
	assert_int_equal(pair.target->state.lost_others, 5);
	finish(&pair);
}

static void notes_of_the_writer_that_find_no_room_are_counted(void **state)
{
	struct pair pair;
	struct process_state *process;

	(void)state;
	start(&pair);
	process = &pair.target->state;
	for (uint32_t twice = 0; twice < 2; twice++)
		for (uint32_t i = 0; i < PROCESS_STATE_NOTES_MAX; i++)
			torsh_process_state_note(process, "note %u", i);
	assert_int_equal(process->losses[WRITER_LOSS_notes_unkept], 0);
	assert_false(torsh_target_is_lossy(pair.target));
	torsh_process_state_note(process, "one more");
	assert_int_equal(process->n_notes, PROCESS_STATE_NOTES_MAX);
	assert_int_equal(process->losses[WRITER_LOSS_notes_unkept], 1);
	assert_true(torsh_target_is_lossy(pair.target));
	finish(&pair);
}

/* Operators that are nested too deep count as the outer ones: reported as a loss. */
static void operators_nested_too_deep_are_a_loss(void **state)
{
	uint64_t losses[N_WRITER_LOSSES];
	struct pair pair;

	(void)state;
	start(&pair);
	for (uint32_t i = 0; i < 1u << 17; i++)
		torsh_scopes_take(&pair.target->state.scopes, 0,
				  &(struct event){.id = EVENT_OP_BEGIN,
						  .op_begin = {.name = 1, .record = i}});
	torsh_target_losses(pair.target, losses);
	assert_int_equal(losses[WRITER_LOSS_scopes_unkept], 1u << 16);
	assert_true(torsh_target_is_lossy(pair.target));
	finish(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_no_ring_had_is_counted),
		cmocka_unit_test(what_the_agent_lost_is_counted),
		cmocka_unit_test(notes_of_the_writer_that_find_no_room_are_counted),
		cmocka_unit_test(operators_nested_too_deep_are_a_loss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
