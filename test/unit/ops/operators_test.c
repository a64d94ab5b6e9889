/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls rebuilt from a timeline: nesting, self time, memory, FLOPs, modules and phases, on small
 * fixed timelines.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test/unit/fixtures/operators_fixture.h"
#include "test/unit/fixtures/random.h"

static void self_time_is_without_what_is_inside(void **state)
{
	(void)state;
	fixture_op(&fixture, 100, 0, 1, "aten::linear", NULL, 0, 5);
	fixture_op(&fixture, 110, 0, 2, "aten::t", NULL, 0, 5);
	fixture_op(&fixture, 111, 0, 3, "aten::transpose", NULL, 0, 5);
	fixture_op_end(&fixture, 114, 0, 3);
	fixture_op_end(&fixture, 120, 0, 2);
	/* A range and a module between do not change what is an operator's own. */
	fixture_push(&fixture, 120, 0, "m:Linear", NULL, RANGE_BY_MODULE);
	fixture_op(&fixture, 130, 0, 4, "aten::addmm",
		   "float32[32];float32[4,64];float32[64,32];1;1", 0, 5);
	fixture_op_end(&fixture, 170, 0, 4);
	fixture_pop(&fixture, 180, 0, NULL, RANGE_BY_MODULE);
	fixture_op_end(&fixture, 200, 0, 1);
	/* Beside it, on another thread. */
	fixture_op(&fixture, 150, 1, 5, "aten::t", NULL, 0, NONE);
	fixture_op_end(&fixture, 250, 1, 5);
	collect(OPERATORS_BY_NAME, 0);
	assert_int_equal(operators.n, 4);
	assert_int_equal(operators.calls, 5);
	assert_int_equal(find("aten::linear")->cpu_ns, 100);
	assert_int_equal(find("aten::linear")->self_cpu_ns, 50);
	assert_int_equal(find("aten::t")->calls, 2);
	assert_int_equal(find("aten::t")->cpu_ns, 110);
	assert_int_equal(find("aten::t")->self_cpu_ns, 107);
	assert_int_equal(find("aten::t")->min_ns, 10);
	assert_int_equal(find("aten::t")->max_ns, 100);
	assert_int_equal(operators.self_cpu_ns, 200);
	assert_int_equal(find("aten::linear")->flops, 16384);
	assert_int_equal(find("aten::linear")->self_flops, 0);
	assert_int_equal(find("aten::addmm")->self_flops, 16384);
	assert_int_equal(operators.flops, 16384);
	collect(OPERATORS_BY_NAME, 101);
	assert_int_equal(operators.n, 1);
	assert_int_equal(find("aten::t")->cpu_ns, 100);
}

static void calls_that_end_elsewhere_are_around_nothing(void **state)
{
	(void)state;
	fixture_op(&fixture, 100, 0, 1, "outer", NULL, 0, NONE);
	fixture_op(&fixture, 110, 0, 2, "gloo:all_reduce", NULL, 7, NONE);
	fixture_op(&fixture, 120, 0, 3, "aten::add", "float32[4];float32[4]", 0, NONE);
	fixture_op_end(&fixture, 130, 0, 3);
	fixture_op_end(&fixture, 140, 0, 1);
	fixture_op(&fixture, 150, 0, 4, "aten::mul", "float32[4];float32[4]", 0, NONE);
	fixture_op_end(&fixture, 160, 1, 2);
	fixture_op_end(&fixture, 170, 0, 4);
	collect(OPERATORS_BY_NAME, 0);
	assert_int_equal(prepass.counts.n_unmatched, 0);
	assert_int_equal(prepass.counts.n_cut, 0);
	assert_int_equal(find("gloo:all_reduce")->cpu_ns, 50);
	assert_int_equal(find("gloo:all_reduce")->self_cpu_ns, 50);
	assert_int_equal(find("outer")->self_cpu_ns, 30);
	assert_int_equal(find("aten::mul")->self_cpu_ns, 20);
}

static void open_calls_end_with_the_recording(void **state)
{
	(void)state;
	fixture_op(&fixture, 100, 0, 1, "outer", NULL, 0, NONE);
	fixture_op_end(&fixture, 105, 0, 77);
	fixture_op(&fixture, 110, 0, 2, "inner", NULL, 0, NONE);
	fixture_op(&fixture, 150, 1, 3, "other", NULL, 0, NONE);
	fixture_op_end(&fixture, 160, 1, 3);
	collect(OPERATORS_BY_NAME, 0);
	assert_int_equal(prepass.counts.n_cut, 2);
	assert_int_equal(prepass.counts.n_unmatched, 1);
	assert_int_equal(find("outer")->cpu_ns, 60);
	assert_int_equal(find("inner")->cpu_ns, 50);
}

static void tensors_belong_to_the_innermost_operator_of_their_thread(void **state)
{
	(void)state;
	fixture_tensor(&fixture, 90, 0, 0x1000, 5, false);
	fixture_op(&fixture, 100, 0, 1, "outer", NULL, 0, NONE);
	fixture_op(&fixture, 110, 0, 2, "aten::empty", NULL, 0, NONE);
	fixture_tensor(&fixture, 111, 0, 0x2000, 64, false);
	fixture_tensor(&fixture, 111, 1, 0x3000, 7, false);
	fixture_op_end(&fixture, 120, 0, 2);
	fixture_tensor(&fixture, 125, 0, 0x4000, 100, false);
	fixture_tensor(&fixture, 126, 0, 0x2000, 64, true);
	fixture_op_end(&fixture, 130, 0, 1);
	collect(OPERATORS_BY_NAME, 0);
	assert_int_equal(find("outer")->allocated_bytes, 164);
	assert_int_equal(find("outer")->self_allocated_bytes, 100);
	assert_int_equal(find("outer")->freed_bytes, 64);
	assert_int_equal(find("aten::empty")->allocated_bytes, 64);
	assert_int_equal(find("aten::empty")->freed_bytes, 0);
}

static void flops_count_once(void **state)
{
	static const char *const convolution =
		"float32[1,3,32,32];float32[8,3,3,3];-;{1,1};{0,0};{1,1};false;{0,0};1";

	(void)state;
	fixture_op(&fixture, 100, 0, 1, "aten::conv2d",
		   "float32[1,3,32,32];float32[8,3,3,3];-;{1,1};{0,0};{1,1};1", 0, NONE);
	fixture_op(&fixture, 101, 0, 2, "aten::convolution", convolution, 0, NONE);
	fixture_op(&fixture, 102, 0, 3, "aten::_convolution", convolution, 0, NONE);
	fixture_op(&fixture, 103, 0, 4, "mine::leaf", NULL, 0, NONE);
	fixture_op_end(&fixture, 104, 0, 4);
	fixture_op_end(&fixture, 105, 0, 3);
	fixture_op_end(&fixture, 106, 0, 2);
	fixture_op_end(&fixture, 107, 0, 1);
	/* Its sum is what it is worth, not itself once more. */
	fixture_op(&fixture, 110, 0, 5, "aten::mean", "float32[6,7]", 0, NONE);
	fixture_op(&fixture, 111, 0, 6, "aten::sum", "float32[6,7]", 0, NONE);
	fixture_op_end(&fixture, 112, 0, 6);
	fixture_op_end(&fixture, 113, 0, 5);
	fixture_op(&fixture, 120, 0, 7, "mine::leaf", NULL, 0, NONE);
	fixture_op_end(&fixture, 121, 0, 7);
	collect(OPERATORS_BY_NAME, 0);
	assert_int_equal(operators.flops, 388800);
	assert_int_equal(operators.flops_all, 388800 + 42);
	assert_int_equal(find("aten::conv2d")->flops, 388800);
	assert_int_equal(find("aten::convolution")->self_flops, 388800);
	assert_int_equal(find("aten::_convolution")->flops, 0);
	assert_int_equal(find("aten::mean")->flops_all, 42);
	assert_int_equal(find("aten::mean")->self_flops_all, 0);
	/* Inside of what was counted nothing is unknown. */
	assert_int_equal(operators.n_unknown, 1);
	assert_string_equal(operators.unknown[0].name, "mine::leaf");
	assert_int_equal(operators.unknown[0].calls, 1);
	assert_int_equal(operators.calls_without_inputs, 1);
}

static void what_has_no_data_computes_nothing(void **state)
{
	(void)state;
	/*
	 * What torch.compile looks at is around operators on tensors that have only sizes.
	 */
	fixture_op(&fixture, 100, 0, 1, "mine::looks", NULL, 0, NONE);
	fixture_op(&fixture, 101, 0, 2, "aten::mm", "float32[2,3]@meta;float32[3,5]@meta", 0, NONE);
	fixture_op_end(&fixture, 102, 0, 2);
	fixture_op_end(&fixture, 103, 0, 1);
	/* One that has data, around one that has none: it only queries a shape. */
	fixture_op(&fixture, 110, 0, 3, "aten::mm", "float32[2,3];float32[3,5]", 0, NONE);
	fixture_op(&fixture, 111, 0, 4, "aten::mm", "float32[2,3]@meta;float32[3,5]@meta", 0, NONE);
	fixture_op_end(&fixture, 112, 0, 4);
	fixture_op_end(&fixture, 113, 0, 3);
	fixture_op(&fixture, 120, 0, 5, "aten::mm", "float32[2,3];float32[3,5]", 0, NONE);
	fixture_op_end(&fixture, 121, 0, 5);
	collect(OPERATORS_BY_NAME, 0);
	assert_int_equal(operators.flops, 60);
	assert_int_equal(operators.flops_all, 60);
	assert_int_equal(operators.n_unknown, 0);
}

static void only_the_innermost_is_unknown(void **state)
{
	(void)state;
	fixture_op(&fixture, 100, 0, 1, "mine::outer", NULL, 0, NONE);
	fixture_op(&fixture, 101, 0, 2, "mine::leaf", NULL, 0, NONE);
	fixture_op_end(&fixture, 102, 0, 2);
	fixture_op_end(&fixture, 103, 0, 1);
	/* What something inside is worth, it is worth. */
	fixture_op(&fixture, 110, 0, 3, "mine::counted", NULL, 0, NONE);
	fixture_op(&fixture, 111, 0, 4, "aten::mm", "float32[2,3];float32[3,5]", 0, NONE);
	fixture_op_end(&fixture, 112, 0, 4);
	fixture_op_end(&fixture, 113, 0, 3);
	/*
	 * A library's computes itself, whatever memory it takes inside; a function of the program
	 * is made of others.
	 */
	fixture_op(&fixture, 120, 0, 5, "mine::kernel", NULL, 0, NONE);
	fixture_op(&fixture, 121, 0, 6, "aten::empty", "{2}", 0, NONE);
	fixture_op_end(&fixture, 122, 0, 6);
	fixture_op_end(&fixture, 123, 0, 5);
	fixture_op(&fixture, 130, 0, 7, "function", NULL, 0, NONE);
	fixture_op(&fixture, 131, 0, 8, "aten::empty", "{2}", 0, NONE);
	fixture_op_end(&fixture, 132, 0, 8);
	fixture_op_end(&fixture, 133, 0, 7);
	fixture_op(&fixture, 140, 0, 9, "function", NULL, 0, NONE);
	fixture_op_end(&fixture, 141, 0, 9);
	/* Scopes of the program and of autograd compute nothing themselves. */
	fixture_op(&fixture, 150, 0, 10, "mine::scope", NULL, 7, NONE);
	fixture_op_end(&fixture, 151, 0, 10);
	fixture_op(&fixture, 160, 0, 11, "MineBackward0", NULL, 1, NONE);
	fixture_op_end(&fixture, 161, 0, 11);
	collect(OPERATORS_BY_NAME, 0);
	assert_int_equal(operators.n_unknown, 3);
	for (size_t i = 0; i < operators.n_unknown; i++) {
		const char *name = operators.unknown[i].name;

		assert_true(!strcmp(name, "mine::leaf") || !strcmp(name, "mine::kernel") ||
			    !strcmp(name, "function"));
		assert_int_equal(operators.unknown[i].calls, 1);
	}
	assert_int_equal(operators.flops, 60);
}

static void backward_belongs_to_the_module_of_its_forward(void **state)
{
	(void)state;
	put_step(1000, 1, 0);
	put_step(2000, 11, 2);
	collect(OPERATORS_BY_MODULE, 0);
	assert_int_equal(operators.n, 3);
	assert_int_equal(find("net:Linear")->calls, 6);
	assert_int_equal(find("net:Linear")->cpu_ns, 2 * (10 + 15));
	assert_int_equal(find("net:Linear")->self_cpu_ns, 2 * (10 + 15));
	assert_int_equal(find("net:Linear")->flops, 2 * (16384 + 16384));
	assert_int_equal(find(":MSELoss")->calls, 2);
	assert_int_equal(find("")->calls, 4);
}

static void number_thread(uint64_t at, uint32_t thread, uint32_t number)
{
	struct event event = {.id = EVENT_OP_THREAD, .op_thread.number = number};

	fixture_event(&fixture, at, thread, &event);
}

static void put_backward(uint64_t at, uint32_t record, uint32_t forward_thread, uint64_t sequence)
{
	struct event event = {.id = EVENT_OP_BEGIN};

	event.op_begin.name = fixture_label(&fixture, "AddmmBackward0");
	event.op_begin.scope = OP_BACKWARD;
	event.op_begin.record = record;
	event.op_begin.forward_thread = forward_thread;
	event.op_begin.sequence = sequence;
	fixture_event(&fixture, at, 0, &event);
	fixture_op_end(&fixture, at + 10, 0, record);
}

/* Each thread counts its nodes by itself. */
static void backward_belongs_to_the_thread_that_ran_forward(void **state)
{
	static const char *const modules[] = {"one:Linear", "other:Linear"};

	(void)state;
	for (uint32_t thread = 0; thread < 2; thread++) {
		uint64_t at = 1000 + 100 * thread;

		number_thread(at, thread, 7 + thread);
		fixture_push(&fixture, at, thread, modules[thread], NULL, RANGE_BY_MODULE);
		fixture_op(&fixture, at + 1, thread, 1 + thread, "aten::addmm", NULL, OP_FUNCTION,
			   5);
		fixture_op_end(&fixture, at + 2, thread, 1 + thread);
		fixture_pop(&fixture, at + 3, thread, NULL, RANGE_BY_MODULE);
	}
	put_backward(2000, 3, 7, 5);
	put_backward(2100, 4, 8, 5);
	put_backward(2200, 5, 8, 5);
	put_backward(2300, 6, 9, 5);
	collect(OPERATORS_BY_MODULE, 0);
	assert_int_equal(find("one:Linear")->calls, 2);
	assert_int_equal(find("other:Linear")->calls, 3);
	assert_int_equal(find("")->calls, 1);
}

static void overloads_are_kept_apart(void **state)
{
	static const char *const overloads[] = {"Tensor", "Scalar", "Tensor", NULL};

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		struct event event = {.id = EVENT_OP_BEGIN, .op_begin.record = i};

		event.op_begin.name = fixture_label(&fixture, "aten::add");
		event.op_begin.overload = overloads[i] ? fixture_label(&fixture, overloads[i]) : 0;
		event.op_begin.sequence = NONE;
		fixture_event(&fixture, 10 * i, 0, &event);
		fixture_op_end(&fixture, 10 * i + 5, 0, i);
	}
	collect(OPERATORS_BY_OVERLOAD, 0);
	assert_int_equal(operators.n, 3);
	for (size_t i = 0; i < operators.n; i++)
		assert_int_equal(operators.items[i].calls,
				 strcmp(operators.items[i].overload, "Tensor") ? 1 : 2);
	collect(OPERATORS_BY_NAME, 0);
	assert_int_equal(find("aten::add")->calls, 4);
}

static void phases_follow_from_what_is_around(void **state)
{
	(void)state;
	put_step(1000, 1, 0);
	collect(OPERATORS_BY_PHASE, 0);
	assert_int_equal(operators.n, 4);
	assert_int_equal(find("forward")->calls, 1);
	assert_int_equal(find("loss")->calls, 1);
	assert_int_equal(find("backward")->calls, 2);
	assert_int_equal(find("backward")->cpu_ns, 15);
	assert_int_equal(find("optimizer")->calls, 2);
	assert_int_equal(find("optimizer")->cpu_ns, 10);
	assert_int_equal(find("optimizer")->flops_all, 2048);
}

static void losses_are_recognised_by_their_operators(void **state)
{
	static const char *const losses[] = {
		"aten::cross_entropy_loss", "aten::mse_loss", "aten::kl_div",
		"aten::binary_cross_entropy_with_logits", "mine::FocalLoss"};
	static const char *const others[] = {"aten::softmax", "aten::cross",
					     "aten::mse_loss_backward", "aten::lossless"};
	const size_t n_losses = sizeof(losses) / sizeof(*losses),
		     n_others = sizeof(others) / sizeof(*others);
	uint64_t at = 100;

	(void)state;
	for (size_t i = 0; i < n_losses + n_others; i++, at += 10) {
		fixture_op(&fixture, at, 0, (uint32_t)i,
			   i < n_losses ? losses[i] : others[i - n_losses], NULL, 0, NONE);
		fixture_op(&fixture, at + 1, 0, 100 + (uint32_t)i, "aten::log", NULL, 0, NONE);
		fixture_op_end(&fixture, at + 2, 0, 100 + (uint32_t)i);
		fixture_op_end(&fixture, at + 3, 0, (uint32_t)i);
	}
	/*
	 * A scope of the program may be called so; in backward a loss is part of it, in an
	 * optimizer its closure's.
	 */
	fixture_op(&fixture, at, 0, 50, "findLoss", NULL, 7, NONE);
	fixture_op_end(&fixture, at + 1, 0, 50);
	fixture_op(&fixture, at + 2, 0, 51, "MineBackward0", NULL, 1, NONE);
	fixture_op(&fixture, at + 3, 0, 52, "aten::mse_loss", NULL, 0, NONE);
	fixture_op_end(&fixture, at + 4, 0, 52);
	fixture_op_end(&fixture, at + 5, 0, 51);
	fixture_op(&fixture, at + 6, 0, 53, "Optimizer.step#LBFGS.step", NULL, OP_USER, NONE);
	fixture_op(&fixture, at + 7, 0, 54, "aten::mse_loss", NULL, 0, NONE);
	fixture_op_end(&fixture, at + 8, 0, 54);
	fixture_op_end(&fixture, at + 9, 0, 53);
	collect(OPERATORS_BY_PHASE, 0);
	assert_int_equal(find("loss")->calls, 2 * n_losses + 1);
	assert_int_equal(find("forward")->calls, 2 * n_others + 1);
	assert_int_equal(find("backward")->calls, 2);
}

/* One call on a thread, which nothing is around. */
static void put_alone(uint64_t at, uint32_t thread, uint32_t record, const char *name,
		      uint32_t scope, uint64_t sequence)
{
	fixture_op(&fixture, at, thread, record, name, NULL, scope, sequence);
	fixture_op_end(&fixture, at + 1, thread, record);
}

static void what_is_between_backward_and_the_optimizer_is_backward(void **state)
{
	(void)state;
	put_step(1000, 1, 0);
	/*
	 * A collective of gradients on a thread of its own, then what a reducer does when all have
	 * come.
	 */
	put_alone(1030, 2, 20, "gloo:all_reduce", OP_USER, NONE);
	put_alone(1037, 0, 21, "torch.distributed.ddp.reducer::copy_bucket_to_grad", 0, 5);
	put_alone(1060, 0, 22, "aten::randn", 0, NONE);
	put_step(2000, 31, 6);
	collect(OPERATORS_BY_PHASE, 0);
	assert_int_equal(find("backward")->calls, 2 * 2 + 2);
	assert_int_equal(find("forward")->calls, 2 + 1);
	assert_int_equal(find("optimizer")->calls, 2 * 2);
}

/* The begin of a scope around everything implies nothing about what comes later. */
static void a_scope_that_begins_after_backward_may_hold_the_next_step(void **state)
{
	(void)state;
	put_step(1000, 1, 0);
	fixture_op(&fixture, 1037, 0, 20, "finish and go on", NULL, OP_USER, NONE);
	put_step(2000, 31, 6);
	fixture_op_end(&fixture, 2060, 0, 20);
	collect(OPERATORS_BY_PHASE, 0);
	assert_int_equal(find("forward")->calls, 2);
	assert_int_equal(find("loss")->calls, 2);
}

static void without_modules_setup_ends_where_backward_does(void **state)
{
	(void)state;
	for (uint64_t at = 100; at < 300; at += 100) {
		uint64_t sequence = at / 100 * 2;

		/* Nobody goes backward through the first: it makes weights. */
		put_alone(at, 0, 1, "aten::mul", 0, sequence);
		put_alone(at + 10, 0, 2, "aten::mm", 0, sequence);
		put_alone(at + 20, 0, 3, "aten::sum", 0, sequence + 1);
		put_alone(at + 30, 0, 4, "SumBackward0", OP_BACKWARD, sequence + 1);
		put_alone(at + 40, 0, 5, "MmBackward0", OP_BACKWARD, sequence);
		put_alone(at + 50, 0, 6, "aten::sub_", 0, NONE);
	}
	collect(OPERATORS_BY_PHASE, 0);
	assert_int_equal(find("setup")->calls, 1);
	assert_int_equal(find("forward")->calls, 7);
	assert_int_equal(find("backward")->calls, 4);
}

/* Against a list that is sorted. */
static void percentiles_are_as_exact_as_documented(void **state)
{
	enum { N = 5000 };
	static uint64_t values[N];
	struct histogram histogram = {0};
	uint64_t random = 3;

	(void)state;
	assert_int_equal(torsh_histogram_percentile(&histogram, 0.5), 0);
	for (size_t i = 0; i < N; i++) {
		values[i] = random_wide(&random) >> (20 + random_below(&random, 40));
		torsh_histogram_add(&histogram, values[i]);
	}
	for (size_t i = 1; i < N; i++) {
		for (size_t k = i; k && values[k] < values[k - 1]; k--) {
			uint64_t value = values[k];

			values[k] = values[k - 1];
			values[k - 1] = value;
		}
	}
	for (int percent = 1; percent <= 100; percent++) {
		double exact = (double)values[(size_t)percent * N / 100 - 1];
		double found = (double)torsh_histogram_percentile(&histogram, percent / 100.0);

		if (found < exact * (1 - HISTOGRAM_ERROR) - 0.5 ||
		    found > exact * (1 + HISTOGRAM_ERROR) + 0.5)
			fail_msg("%d %%: %f instead of %f", percent, found, exact);
	}
	torsh_histogram_free(&histogram);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_A_TIMELINE(self_time_is_without_what_is_inside),
		ON_A_TIMELINE(calls_that_end_elsewhere_are_around_nothing),
		ON_A_TIMELINE(open_calls_end_with_the_recording),
		ON_A_TIMELINE(tensors_belong_to_the_innermost_operator_of_their_thread),
		ON_A_TIMELINE(flops_count_once),
		ON_A_TIMELINE(what_has_no_data_computes_nothing),
		ON_A_TIMELINE(only_the_innermost_is_unknown),
		ON_A_TIMELINE(backward_belongs_to_the_module_of_its_forward),
		ON_A_TIMELINE(backward_belongs_to_the_thread_that_ran_forward),
		ON_A_TIMELINE(overloads_are_kept_apart),
		ON_A_TIMELINE(phases_follow_from_what_is_around),
		ON_A_TIMELINE(losses_are_recognised_by_their_operators),
		ON_A_TIMELINE(what_is_between_backward_and_the_optimizer_is_backward),
		ON_A_TIMELINE(a_scope_that_begins_after_backward_may_hold_the_next_step),
		ON_A_TIMELINE(without_modules_setup_ends_where_backward_does),
		cmocka_unit_test(percentiles_are_as_exact_as_documented),
	};

	return cmocka_run_group_tests(tests, make_path, remove_path);
}
