/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Texts of inputs, and the FLOPs of operators with known numbers from torch.profiler and
 * FlopCounterMode.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "test/unit/fixtures/random.h"
#include "tools/ops/flops.h"

static struct inputs inputs;

static void inputs_are_taken_apart(void **state)
{
	const struct input *input;

	(void)state;
	torsh_inputs_parse(
		&inputs,
		"float32[64,128];float32[128,32](1,128)@cuda:0;?;{1,-2};{int64[3],float16[]};-3;0.5;true;-;_");
	assert_true(inputs.is_whole);
	assert_int_equal(inputs.n, 10);
	input = torsh_inputs_get(&inputs, 0);
	assert_int_equal(input->kind, INPUT_TENSOR);
	assert_int_equal(input->n_dims, 2);
	assert_int_equal(input->dims[1], 128);
	assert_false(input->has_strides);
	assert_int_equal(input->n_type, strlen("float32"));
	assert_int_equal(torsh_input_elements(input), 64 * 128);
	input = torsh_inputs_get(&inputs, 1);
	assert_true(input->has_strides);
	assert_int_equal(input->strides[1], 128);
	assert_int_equal(input->n_text, strlen("float32[128,32](1,128)@cuda:0"));
	assert_int_equal(torsh_inputs_get(&inputs, 2)->kind, INPUT_UNDEFINED);
	input = torsh_inputs_get(&inputs, 3);
	assert_int_equal(input->kind, INPUT_LIST);
	assert_int_equal(input->n_items, 2);
	assert_int_equal(input[2].integer, -2);
	input = torsh_inputs_get(&inputs, 4);
	assert_int_equal(input->n_items, 2);
	assert_int_equal(input[1].dims[0], 3);
	assert_int_equal(input[2].n_dims, 0);
	assert_int_equal(torsh_input_elements(&input[2]), 1);
	assert_int_equal(torsh_inputs_get(&inputs, 5)->integer, -3);
	assert_true(torsh_inputs_get(&inputs, 6)->number == 0.5);
	assert_int_equal(torsh_inputs_get(&inputs, 7)->kind, INPUT_BOOL);
	assert_int_equal(torsh_inputs_get(&inputs, 8)->kind, INPUT_NONE);
	assert_int_equal(torsh_inputs_get(&inputs, 9)->kind, INPUT_OTHER);
	assert_null(torsh_inputs_get(&inputs, 10));
}

static void no_inputs_are_something_else_than_unknown_ones(void **state)
{
	(void)state;
	torsh_inputs_parse(&inputs, "()");
	assert_true(inputs.is_whole && !inputs.n);
	torsh_inputs_parse(&inputs, "");
	assert_false(inputs.is_whole);
	torsh_inputs_parse(&inputs, NULL);
	assert_false(inputs.is_whole);
}

static void lists_hold_lists_and_inputs_groups(void **state)
{
	const struct input *list;

	(void)state;
	torsh_inputs_parse(&inputs, "{{float32[2,2],float32[3]},{}};group#12;{1}");
	assert_true(inputs.is_whole);
	assert_int_equal(inputs.n, 3);
	list = torsh_inputs_get(&inputs, 0);
	assert_int_equal(list->n_items, 4);
	assert_int_equal(list[1].kind, INPUT_LIST);
	assert_int_equal(list[1].n_items, 2);
	assert_int_equal(torsh_input_elements(&list[2]), 4);
	assert_int_equal(list[4].kind, INPUT_LIST);
	assert_int_equal(list[4].n_items, 0);
	assert_int_equal(torsh_inputs_get(&inputs, 1)->kind, INPUT_GROUP);
	assert_int_equal(torsh_inputs_get(&inputs, 1)->integer, 12);
	assert_int_equal(torsh_inputs_get(&inputs, 2)->n_items, 1);
}

static void texts_that_are_no_inputs_are_refused(void **state)
{
	static const char *const texts[] = {
		"float32[",
		"float32[1",
		"float32[1,]",
		"float32[+1]",
		"float32[ 1]",
		"float32[1](",
		"float32[1](1,2)",
		"{",
		"{1",
		"{1,}",
		"{1;2}",
		";",
		"1;",
		"}",
		"float32[1]x",
		"float32[1,1,1,1,1,1,1,1,1,1,1,1,1]",
		"99999999999999999999",
		"{{{{{1}}}}}",
		"{{1}",
		"{{1}2}",
		"group#",
		"group#0",
		"group#x",
		"group#99999999999",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		torsh_inputs_parse(&inputs, texts[i]);
		if (inputs.is_whole)
			fail_msg("\"%s\" was taken for inputs", texts[i]);
	}
}

/* Whatever the bytes are, and however many inputs. */
static void any_text_is_survived(void **state)
{
	static const char bytes[] = "float32[64,128](1)@{};-_?0.5e1true";
	uint64_t random = 7;
	char text[600];

	(void)state;
	for (int round = 0; round < 20000; round++) {
		size_t n = random_below(&random, sizeof(text) - 1);

		for (size_t i = 0; i < n; i++)
			text[i] = bytes[random_below(&random, sizeof(bytes) - 1)];
		text[n] = '\0';
		torsh_inputs_parse(&inputs, text);
		assert_true(inputs.n <= inputs.n_items && inputs.n_items <= INPUTS_MAX);
		torsh_flops_of("aten::convolution_backward", &inputs);
		torsh_flops_of("aten::_foreach_add_", &inputs);
	}
	for (size_t i = 0; i + 2 < sizeof(text); i += 2)
		memcpy(text + i, "1;", 2);
	text[sizeof(text) - 2] = '\0';
	torsh_inputs_parse(&inputs, text);
	assert_false(inputs.is_whole);
	assert_int_equal(inputs.n, INPUTS_MAX);
}

/* counter: FlopCounterMode's value. */
static const struct {
	const char *name, *inputs;
	uint64_t counter, all;
} known[] = {
	/* torch.profiler's with_flops on 1.13 */
	{"aten::mm", "float32[16,64];float32[64,32]", 65536, 65536},
	/* Inside of torch.func.grad, and of that of that. */
	{"aten::mm", "_;_;float32[4,8];float32[8,6]", 384, 384},
	{"aten::mm", "float32[4,8];_;_;_;float32[4,8];float32[8,6]", 384, 384},
	{"aten::addmm", "_;_;_;1;1;float32[32];float32[4,64];float32[64,32];1;1", 16384, 16384},
	{"aten::bmm", "float32[2,3,4];float32[2,4,5]", 240, 240},
	{"aten::addmm", "float32[32];float32[4,64];float32[64,32];1;1", 16384, 16384},
	{"aten::add", "float32[10];float32[10];1", 0, 10},
	/* conv2d 1x3x32x32, 8 of 3x3: 30x30 places */
	{"aten::convolution",
	 "float32[1,3,32,32];float32[8,3,3,3];float32[8];{1,1};{0,0};{1,1};false;{0,0};1", 388800,
	 388800},
	{"aten::mkldnn_convolution",
	 "float32[1,3,32,32];float32[8,3,3,3];float32[8];{0,0};{1,1};{1,1};1", 0, 388800},
	/*
	 * one number for all directions, padding, stride, dilation: (32 + 4 - 2*2 - 1) / 2 + 1 = 16
	 */
	{"aten::convolution", "float32[1,3,32,32];float32[8,3,3,3];-;{2};{2};{2};false;{0};1",
	 110592, 110592},
	/* transposed: each of 8x8 inputs goes into 3x3x4 */
	{"aten::convolution", "float32[2,3,8,8];float32[3,4,3,3];-;{2,2};{1,1};{1,1};true;{0,0};1",
	 27648, 27648},
	{"aten::convolution", "float32[2,8,16];float32[12,4,3];-;{1};{1};{1};false;{0};2", 9216,
	 9216},
	/* groups 2: FlopCounterMode counts the weight's gradient twice */
	{"aten::convolution_backward",
	 "float32[2,12,16];float32[2,8,16];float32[12,4,3];{12};{1};{1};{1};false;{0};2;{true,true,true}",
	 9216 + 18432, 9216 + 9216},
	{"aten::convolution_backward",
	 "float32[2,12,16];float32[2,8,16];float32[12,4,3];{12};{1};{1};{1};false;{0};2;{false,true,true}",
	 18432, 9216},
	/* 2 * 2 * 4 * 16 * 24 * (8 + 6) */
	{"aten::_scaled_dot_product_flash_attention_for_cpu",
	 "float32[2,4,16,8];float32[2,4,24,8];float32[2,4,24,6];0.0;false;-;-", 86016, 86016},
	{"aten::_scaled_dot_product_flash_attention_for_cpu_backward",
	 "float32[2,4,16,6];float32[2,4,16,8];float32[2,4,24,8];float32[2,4,24,6];_;_", 221184,
	 221184},
	{"aten::linear", "float32[5,7,64];float32[32,64];float32[32]", 0, 143360},
	{"aten::mul_", "float32[4,1,3];float32[5,1]", 0, 60},
	{"aten::_foreach_add_", "{float32[4],float32[2,3]};{float32[4],float32[2,3]};1", 0, 10},
	{"aten::_foreach_addcdiv_", "{float32[4]};{float32[4]};{float32[4]};1", 0, 12},
	{"aten::sum", "float32[6,7];-", 0, 42},
	/* A frozen model's, with the weights as they were: alone, added to a tensor, in place */
	{"mkldnn::_linear_pointwise", "float32[40,64];float32[48,64];float32[48];_;{-1};_",
	 2 * 40 * 64 * 48, 2 * 40 * 64 * 48},
	{"mkldnn::_linear_pointwise", "float32[40,64];_;float32[48];_;{-1};_", 2 * 40 * 64 * 48,
	 2 * 40 * 64 * 48},
	{"mkldnn::_linear_pointwise", "float32[40,64];float32[40,64];_;float32[64];_",
	 2 * 40 * 64 * 64, 2 * 40 * 64 * 64},
	{"mkldnn::_convolution_pointwise",
	 "float32[2,3,8,8];float32[5,3,3,3];float32[5];{1,1};{2,2};{1,1};1;_;{-};_",
	 2 * 2 * 4 * 4 * 5 * 3 * 9, 2 * 2 * 4 * 4 * 5 * 3 * 9},
	{"mkldnn::_convolution_pointwise",
	 "float32[2,3,8,8];float32[2,5,4,4];float32[5,3,3,3];-;{1,1};{2,2};{1,1};1;_;1.0;-;{-};"
	 "-",
	 2 * 2 * 4 * 4 * 5 * 3 * 9, 2 * 2 * 4 * 4 * 5 * 3 * 9},
	{"mkldnn::_convolution_pointwise_",
	 "float32[2,5,4,4];float32[2,3,8,8];float32[5,3,3,3];-;{1,1};{2,2};{1,1};1;_;1.0;-;{-};"
	 "-",
	 2 * 2 * 4 * 4 * 5 * 3 * 9, 2 * 2 * 4 * 4 * 5 * 3 * 9},
	{"mkldnn::_convolution_transpose_pointwise",
	 "float32[2,3,4,4];float32[3,5,3,3];-;{0,0};{0,0};{2,2};{1,1};1;_;{-};_",
	 2 * 2 * 4 * 4 * 3 * 5 * 9, 2 * 2 * 4 * 4 * 3 * 5 * 9},
	{"aten::native_layer_norm", "float32[6,7];{7};float32[7];float32[7];1e-05", 0, 336},
	{"aten::_softmax", "float32[6,7];-1;false", 0, 210},
	{"aten::mv", "float32[6,7];float32[7]", 0, 84},
	{"aten::dot", "float32[9];float32[9]", 0, 18},
	/* 2 * 5 * 3 * (80 * 10 + 80 * 20) */
	{"aten::mkldnn_rnn_layer",
	 "float32[5,3,10];float32[80,10];float32[80,20];float32[80];float32[80];_", 0, 72000},
	/* 4x4 windows of 2x2 in each of 2x3 */
	{"aten::max_pool2d_with_indices", "float32[2,3,8,8];{2,2};{2,2};{0,0};{1,1};false", 0, 384},
};

static void listed_operators_have_published_flops(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		struct flops flops;

		torsh_inputs_parse(&inputs, known[i].inputs);
		flops = torsh_flops_of(known[i].name, &inputs);
		if (flops.status != FLOPS_COUNTED || flops.counter != known[i].counter ||
		    flops.all != known[i].all)
			fail_msg("%s(%s): status %d, counter %llu, all %llu", known[i].name,
				 known[i].inputs, flops.status, (unsigned long long)flops.counter,
				 (unsigned long long)flops.all);
	}
}

static enum flops_status status_of(const char *name, const char *text)
{
	torsh_inputs_parse(&inputs, text);
	return torsh_flops_of(name, &inputs).status;
}

static void unknown_flops_are_not_0(void **state)
{
	(void)state;
	assert_int_equal(status_of("aten::linalg_svd", "float32[4,4]"), FLOPS_NO_FORMULA);
	assert_int_equal(status_of("mine::op", "float32[4,4]"), FLOPS_NO_FORMULA);
	assert_int_equal(status_of("aten::mm", ""), FLOPS_NO_FORMULA);
	assert_int_equal(status_of("aten::mm", "float32[4,4];float32[5,4]"), FLOPS_NO_FORMULA);
	assert_int_equal(status_of("aten::convolution",
				   "float32[1,3,8,8];float32[8,3,3,3];-;_;_;_;false;_;1"),
			 FLOPS_NO_FORMULA);
	assert_int_equal(status_of("aten::convolution",
				   "float32[1,3,2,2];float32[8,3,3,3];-;{1};{0};{1};false;{0};1"),
			 FLOPS_NO_FORMULA);
	assert_int_equal(status_of("aten::mm", "_;_"), FLOPS_NO_FORMULA);
	assert_int_equal(status_of("aten::mm", "_;float32[4,4]"), FLOPS_NO_FORMULA);
	assert_int_equal(status_of("mkldnn::_convolution_pointwise",
				   "float32[2,3,8,8];_;float32[5];{1,1};{2,2};{1,1};1;_;{-};_"),
			 FLOPS_NO_FORMULA);
	assert_int_equal(status_of("mkldnn::_linear_pointwise", "float32[40,64];_;-;_;{-1};_"),
			 FLOPS_NO_FORMULA);
	assert_int_equal(status_of("aten::view", "float32[4,4];{16}"), FLOPS_NONE);
	assert_int_equal(status_of("aten::copy_", ""), FLOPS_NONE);
	assert_int_equal(status_of("detach", ""), FLOPS_NONE);
	assert_int_equal(status_of("c10d::allreduce_", "{float32[4]}"), FLOPS_NONE);
	assert_int_equal(status_of("aten::mm", "float32[4,4]@meta;float32[4,4]@meta"),
			 FLOPS_NO_DATA);
	assert_int_equal(status_of("aten::_foreach_add_", "{float32[4],float32[2]@meta};1"),
			 FLOPS_NO_DATA);
	assert_int_equal(status_of("aten::mm", "float32[4,4]@cuda:0;float32[4,4]@cuda:0"),
			 FLOPS_COUNTED);
}

/* As Inductor's C++ templates name themselves; inputs are not recorded. */
static void names_of_templates_have_their_sizes(void **state)
{
	static const char *const others[] = {"gemm_m16n64k32",
					     "gemm_m16n64_kernel",
					     "gemm_ms0n64k32_kernel",
					     "graph_gemm_m16n64k32_kernel_",
					     "graph_0gemm_m16n64k32_kernel",
					     "grouped_gemm_g2m16n64k32_kernel",
					     "graph_0_cpp_fused_mm_0",
					     "graph_",
					     "gemm_",
					     "gemm_m-1n64k32_kernel"};
	struct flops flops;

	(void)state;
	torsh_inputs_parse(&inputs, "");
	flops = torsh_flops_of("graph_0_gemm_m16n64k32_kernel", &inputs);
	assert_int_equal(flops.status, FLOPS_COUNTED);
	assert_int_equal(flops.counter, 2 * 16 * 64 * 32);
	assert_int_equal(flops.all, 2 * 16 * 64 * 32);
	flops = torsh_flops_of("gemm_m1n5k7_kernel_single_thread_mm", &inputs);
	assert_int_equal(flops.counter, 2 * 5 * 7);
	flops = torsh_flops_of("gemm_m99999999999n99999999999k9_kernel", &inputs);
	assert_true(flops.all == UINT64_MAX);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		if (torsh_flops_of(others[i], &inputs).status != FLOPS_NO_FORMULA)
			fail_msg("%s has FLOPs", others[i]);
	}
}

static void sums_that_do_not_fit_stay_at_the_top(void **state)
{
	struct flops flops;

	(void)state;
	torsh_inputs_parse(&inputs,
			   "float32[1000000000,1000000000];float32[1000000000,1000000000]");
	flops = torsh_flops_of("aten::mm", &inputs);
	assert_true(flops.all == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inputs_are_taken_apart),
		cmocka_unit_test(no_inputs_are_something_else_than_unknown_ones),
		cmocka_unit_test(lists_hold_lists_and_inputs_groups),
		cmocka_unit_test(texts_that_are_no_inputs_are_refused),
		cmocka_unit_test(any_text_is_survived),
		cmocka_unit_test(listed_operators_have_published_flops),
		cmocka_unit_test(unknown_flops_are_not_0),
		cmocka_unit_test(names_of_templates_have_their_sizes),
		cmocka_unit_test(sums_that_do_not_fit_stay_at_the_top),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
