/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What threads are in, by their timelines; and what that makes of the blocks that they allocate. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/writer/fold/heap_state.h"
#include "tools/writer/fold/scopes.h"

static const struct scope *begin(struct scopes *scopes, uint32_t slot, uint32_t label,
				 uint32_t record)
{
	return torsh_scopes_take(scopes, slot,
				 &(struct event){.id = EVENT_OP_BEGIN,
						 .op_begin = {.name = label, .record = record}});
}

static const struct scope *end(struct scopes *scopes, uint32_t slot, uint32_t record)
{
	return torsh_scopes_take(scopes, slot,
				 &(struct event){.id = EVENT_OP_END, .op_end.record = record});
}

static void operators_nest_on_each_thread(void **state)
{
	struct scopes scopes = {0};

	(void)state;
	assert_int_equal(begin(&scopes, 0, 10, 1)->operator, 10);
	assert_int_equal(begin(&scopes, 0, 11, 2)->operator, 11);
	assert_int_equal(begin(&scopes, 5, 20, 3)->operator, 20);
	assert_int_equal(end(&scopes, 0, 2)->operator, 10);
	assert_int_equal(end(&scopes, 0, 1)->operator, 0);
	assert_int_equal(end(&scopes, 5, 3)->operator, 0);
	/* An end without a begin is none's. */
	assert_int_equal(end(&scopes, 5, 77)->operator, 0);
	torsh_scopes_destroy(&scopes);
}

static void begin_of(struct scopes *scopes, uint32_t record, uint32_t scope)
{
	torsh_scopes_take(
		scopes, 0,
		&(struct event){.id = EVENT_OP_BEGIN,
				.op_begin = {.name = 1, .record = record, .scope = scope}});
}

static void the_outermost_are_within_none_but_backward_and_the_programs(void **state)
{
	struct scopes scopes = {0};

	(void)state;
	assert_true(torsh_scopes_is_outermost(&scopes, 0));
	begin_of(&scopes, 1, OP_USER);
	assert_true(torsh_scopes_is_outermost(&scopes, 0));
	begin_of(&scopes, 2, OP_FUNCTION);
	assert_false(torsh_scopes_is_outermost(&scopes, 0));
	assert_true(torsh_scopes_is_outermost(&scopes, 1));
	begin_of(&scopes, 3, OP_BACKWARD);
	assert_true(torsh_scopes_is_outermost(&scopes, 0));
	begin_of(&scopes, 4, OP_FUNCTION);
	assert_false(torsh_scopes_is_outermost(&scopes, 0));
	end(&scopes, 0, 4);
	end(&scopes, 0, 3);
	end(&scopes, 0, 2);
	assert_true(torsh_scopes_is_outermost(&scopes, 0));
	torsh_scopes_destroy(&scopes);
}

static void an_operator_may_end_elsewhere_and_out_of_turn(void **state)
{
	struct scopes scopes = {0};
	const struct scope *first;

	(void)state;
	begin(&scopes, 0, 10, 1);
	first = begin(&scopes, 0, 11, 2);
	end(&scopes, 3, 2);
	assert_int_equal(first->operator, 10);
	begin(&scopes, 0, 12, 4);
	assert_int_equal(end(&scopes, 0, 1)->operator, 12);
	assert_int_equal(end(&scopes, 0, 4)->operator, 0);
	torsh_scopes_destroy(&scopes);
}

/* More than there is room for: those that fit are right, before and after. */
static void what_is_too_deep_is_counted(void **state)
{
	const uint32_t n_room = 65536, n_more = 1000;
	struct scopes scopes = {0};

	(void)state;
	for (uint32_t i = 1; i <= n_room; i++)
		assert_int_equal(begin(&scopes, 0, i, i)->operator, i);
	assert_int_equal(scopes.n_unkept, 0);
	for (uint32_t i = n_room + 1; i <= n_room + n_more; i++)
		assert_int_equal(begin(&scopes, 0, i, i)->operator, n_room);
	assert_int_equal(scopes.n_unkept, n_more);
	for (uint32_t i = n_room + n_more; i > n_room; i--)
		assert_int_equal(end(&scopes, 0, i)->operator, n_room);
	for (uint32_t i = n_room; i > 1; i--)
		assert_int_equal(end(&scopes, 0, i)->operator, i - 1);
	assert_int_equal(begin(&scopes, 0, 2000, 2000)->operator, 2000);
	end(&scopes, 0, 2000);
	assert_int_equal(end(&scopes, 0, 1)->operator, 0);
	torsh_scopes_destroy(&scopes);
}

static void modules_are_those_that_are_called(void **state)
{
	struct event push = {.id = EVENT_RANGE_PUSH,
			     .range_push = {.name = 7, .source = RANGE_BY_MODULE}};
	struct event pop = {.id = EVENT_RANGE_POP, .range_pop.source = RANGE_BY_MODULE};
	struct event other = {.id = EVENT_RANGE_PUSH,
			      .range_push = {.name = 9, .source = RANGE_BY_NVTX}};
	struct scopes scopes = {0};

	(void)state;
	assert_int_equal(torsh_scopes_take(&scopes, 0, &push)->module, 7);
	push.range_push.name = 8;
	assert_int_equal(torsh_scopes_take(&scopes, 0, &push)->module, 8);
	assert_int_equal(torsh_scopes_take(&scopes, 0, &other)->module, 8);
	assert_int_equal(torsh_scopes_take(&scopes, 0, &pop)->module, 7);
	assert_int_equal(torsh_scopes_take(&scopes, 0, &pop)->module, 0);
	assert_int_equal(torsh_scopes_take(&scopes, 0, &pop)->module, 0);
	torsh_scopes_end(&scopes, 0);
	assert_null(scopes.stacks[0]);
	torsh_scopes_destroy(&scopes);
}

static void blocks_of_a_stack_are_in_one_scope_or_in_several(void **state)
{
	struct scope in = {.operator= 3, .module = 4};
	struct heap_producer producer = {.scope = &in};
	struct heap heap;

	(void)state;
	torsh_heap_create(&heap, 0);
	for (uint32_t i = 1; i <= 3; i++)
		torsh_heap_alloc(
			&heap, &producer,
			&(struct heap_alloc){.stamp = i, .address = 0x1000 * i, .size = 8});
	assert_int_equal(torsh_heap_totals(&heap, 0).scope.operator, 3);
	assert_int_equal(torsh_heap_totals(&heap, 0).scope.module, 4);
	in.module = 5;
	torsh_heap_alloc(&heap, &producer,
			 &(struct heap_alloc){.stamp = 4, .address = 0x9000, .size = 8});
	assert_int_equal(torsh_heap_totals(&heap, 0).scope.operator, 3);
	assert_int_equal(torsh_heap_totals(&heap, 0).scope.module, HEAP_SCOPES_DIFFER);
	producer.scope = NULL;
	torsh_heap_alloc(&heap, &producer,
			 &(struct heap_alloc){.stamp = 5, .address = 0xa000, .size = 8});
	assert_int_equal(torsh_heap_totals(&heap, 0).scope.operator, HEAP_SCOPES_DIFFER);
	torsh_heap_destroy(&heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operators_nest_on_each_thread),
		cmocka_unit_test(the_outermost_are_within_none_but_backward_and_the_programs),
		cmocka_unit_test(an_operator_may_end_elsewhere_and_out_of_turn),
		cmocka_unit_test(what_is_too_deep_is_counted),
		cmocka_unit_test(modules_are_those_that_are_called),
		cmocka_unit_test(blocks_of_a_stack_are_in_one_scope_or_in_several),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
