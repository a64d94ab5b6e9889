/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* FLOPs of C++ kernels by sources as Inductor (torch 2.15) wrote them, and of damaged ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/unit/fixtures/random.h"
#include "tools/ops/inductor/cpp_kernel.h"

#define KERNEL(name, parameters, body)                                                          \
	"#include <torch/csrc/inductor/cpp_prefix.h>\n"                                         \
	"extern \"C\"  void  kernel(" parameters ")\n"                                          \
	"{\n"                                                                                   \
	"    torch::aot_inductor::RAIIAtenRecordFunctionHandle record_" name "_(\"" name        \
	"\", nullptr);\n" body "}\n"                                                            \
	"static PyObject* kernel_py(PyObject* self, PyObject* const* args, Py_ssize_t nargs)\n" \
	"{\n    auto tmp9 = frobnicate(tmp9);\n}\n"
#define LOOP(x, n, step)                                                                    \
	"for(int64_t " x "=static_cast<int64_t>(0L); " x "<static_cast<int64_t>(" n "); " x \
	"+=static_cast<int64_t>(" step "L))\n"
#define RANGE(x, from, to) \
	x " >= static_cast<int64_t>(" from ") && " x " < static_cast<int64_t>(" to ")"
#define LIKELY(range) "if(C10_LIKELY(" range "))\n"
#define UNLIKELY(range) "if(C10_UNLIKELY(" range "))\n"
#define LOAD(tmp, pointer)                                          \
	"auto " tmp " = at::vec::Vectorized<float>::loadu(" pointer \
	" + static_cast<int64_t>(x0), static_cast<int64_t>(16));\n"
#define X0_OF_100(body) "{\n" LOOP("x0", "100L", "1") "{\n{\n" body "}\n}\n}\n"
#define INPUTS "const float* in_ptr0,\n   const int64_t* in_ptr1,\n   float* out_ptr0"
#define SCALARS                                            \
	"auto tmp0 = in_ptr0[static_cast<int64_t>(x0)];\n" \
	"auto tmp1 = static_cast<float>(2.0);\n"           \
	"auto tmp2 = in_ptr1[static_cast<int64_t>(x0)];\n" \
	"auto tmp3 = static_cast<int64_t>(3);\n"
#define PRODUCT_OF(n)                                                                  \
	"{\n" LOOP("x0", "4L", "1") "{\n{\nfloat tmp_acc0 = 0;\n" LOOP(                \
		"x1", n,                                                               \
		"1") "{\n{\nauto tmp0 = in_ptr0[static_cast<int64_t>(x1 + 16L*x0)];\n" \
		     "auto tmp1 = in_ptr0[static_cast<int64_t>(x1)];\n"                \
		     "auto tmp2 = float(tmp0 * tmp1);\n"                               \
		     "tmp_acc0 = tmp_acc0 + tmp2;\n}\n}\n"                             \
		     "out_ptr0[static_cast<int64_t>(x0)] = static_cast<float>(tmp_acc0);\n}\n}\n}\n"

/* clang-format off */
/* In vectors, and the 7 that are left: 6 operations, one of them a choice */
#define CHAIN \
	"{\n" LOOP("x0", "231L", "16") "{\n{\n" LIKELY(RANGE("x0", "0", "224L")) "{\n" \
	LOAD("tmp0", "in_ptr0") LOAD("tmp4", "in_ptr0") \
	"auto tmp1 = static_cast<float>(2.0);\n" \
	"auto tmp2 = at::vec::Vectorized<float>(tmp1);\n" \
	"auto tmp3 = tmp0 * tmp2;\nauto tmp5 = tmp3 + tmp4;\n" "auto tmp6 = tmp5.sin();\n" \
	"auto tmp7 = at::vec::clamp_min(tmp6, decltype(tmp6)(0));\n" \
	"auto tmp11 = at::vec::VecMask<float,1>(tmp0 > tmp4);\n" \
	"auto tmp12 = decltype(tmp0)::blendv(tmp4, tmp0, " \
	"inductor_vec_mask_cast<float,1>(tmp11));\n" \
	"tmp12.store(out_ptr0 + static_cast<int64_t>(x0));\n}\n" \
	UNLIKELY(RANGE("x0", "224L", "231L")) "{\n" LOAD("tmp0", "in_ptr0") \
	"auto tmp5 = tmp0.exp();\n}\n}\n}\n}\n"
/* What is left, one by one, in a loop of its own */
#define TAIL \
	"{\n" LOOP("x0", "7L", "1") "{\n" LOOP("x1", "33L", "16") "{\n{\n" \
	LIKELY(RANGE("x1", "0", "32L")) "{\n" LOAD("tmp0", "in_ptr0") \
	"auto tmp1 = tmp0.sin();\n}\n" UNLIKELY(RANGE("x1", "32L", "33L")) \
	"{\nfor (int64_t x1_tail = static_cast<int64_t>(32L);" \
	"x1_tail < static_cast<int64_t>(33L); x1_tail++)\n{\n" \
	"auto tmp0 = in_ptr0[static_cast<int64_t>(x1_tail)];\n" \
	"auto tmp1 = std::sin(tmp0);\n}\n}\n}\n}\n}\n}\n"
/* Sums of threads and lanes are not among the additions. */
#define SUMS \
	"{\n{\nfloat tmp_acc0 = 0;\n#pragma omp parallel num_threads(2)\n{\n" \
	"int tid = omp_get_thread_num();\n#pragma omp for\n" LOOP("x0", "16L", "1") "{\n" \
	LOOP("x1", "100L", "16") "{\n{\n" LIKELY(RANGE("x1", "0", "96L")) "{\n" \
	LOAD("tmp0", "in_ptr0") \
	"tmp_acc0_vec_local = cascade_sum_combine(tmp0, &cascade_helper0);\n" "}\n" \
	UNLIKELY(RANGE("x1", "96L", "100L")) "{\n" LOAD("tmp0", "in_ptr0") \
	"masked_tmp_acc0_vec_local = " \
	"cascade_sum_combine(tmp0, static_cast<int64_t>(4L), " \
	"&masked_cascade_helper0);\n}\n}\n}\n}\n" \
	"tmp_acc0_vec_local = cascade_sum_final(&cascade_helper0);\n}\n" \
	"for (int tid = 0; tid < 2; tid++)\n{\n" \
	"tmp_acc0_vec = tmp_acc0_vec + tmp_acc0_vec_arr[tid];\n}\n" \
	"tmp_acc0 = tmp_acc0 + at::vec::vec_reduce_all<float, 1>(" \
	"[](at::vec::Vectorized<float>& x, at::vec::Vectorized<float>& y) " \
	"{ return x + y; }, tmp_acc0_vec);\n" \
	"out_ptr0[static_cast<int64_t>(0L)] = static_cast<float>(tmp_acc0);\n}\n}\n"
/* Integers don't count: 4 of 8 operations are on floats, of which one is two. */
#define INTEGERS \
	X0_OF_100(SCALARS "auto tmp4 = tmp2 + tmp3;\n" "auto tmp5 = int64_t(tmp4 * tmp2);\n" \
	"auto tmp6 = tmp5 > tmp3;\n" "auto tmp7 = c10::convert<float>(tmp5);\n" \
	"auto tmp8 = float(tmp7 + tmp0);\n" "auto tmp9 = tmp6 ? tmp8 : tmp0;\n" \
	"auto tmp10 = fmadd(tmp8, tmp9, tmp0);\n" "auto tmp11 = tmp10 > tmp1;\n" \
	"out_ptr0[static_cast<int64_t>(x0)] = tmp10;\n")
/* A sign is one operation, and so is a sigmoid; random numbers are none. */
#define FUNCTIONS \
	X0_OF_100(SCALARS "auto tmp4 = \n[&]()\n{\n" \
	"auto left = tmp0 > 0 ? decltype(tmp0)(1) : 0;\n" \
	"return left - left;\n}\n()\n;\n" \
	"auto tmp5 = decltype(tmp4)(1) / (decltype(tmp4)(1) + " "std::exp(-tmp4));\n" \
	"auto tmp6 = \n[&]()\n{\n" "result[offset_idx] = normalized_rand_cpu(tmp2, 1);\n" \
	"return result;\n}\n()\n;\n" "auto tmp7 = float(tmp6 + tmp5);\n")
#define ADDS_INTO_MEMORY \
	X0_OF_100(SCALARS "TORCH_CHECK((0 <= tmp2) & (tmp2 < 5L), \"index\");\n" \
	"atomic_add(&out_ptr0[static_cast<int64_t>(20L*tmp2)], " \
	"static_cast<float>(tmp0));\n")
/* Only what a mask doesn't hide is loaded: nothing is computed of it. */
#define MASKED \
	X0_OF_100("auto tmp4 = static_cast<bool>(true);\n" "auto tmp5 = [&]\n{\n" SCALARS \
	"return tmp0;\n}\n;\n" "auto tmp6 = tmp4 ? tmp5() : 0;\n" \
	"auto tmp7 = std::exp(tmp6);\n")
#define WELFORD X0_OF_100(SCALARS "tmp_acc0 = welford_combine(tmp_acc0, tmp0);\n")
#define OUTER \
	X0_OF_100(SCALARS "auto tmp4 = float(tmp0 * tmp0);\n" \
	"auto tmp5 = std::max(tmp4, decltype(tmp4)(0));\n")
#define PRODUCT X0_OF_100(SCALARS "auto tmp4 = float(tmp0 * tmp0);\n")
#define ATTENTION \
	"extern \"C\"\nvoid kernel(const float* query, float* output)\n{\n" \
	"  torch::aot_inductor::RAIIAtenRecordFunctionHandle " \
	"record_graph_0_kernel_(\"graph_0_kernel\", nullptr);\n" \
	"  int64_t batchSize = static_cast<int64_t>(2L);\n" \
	"  int64_t qSize = static_cast<int64_t>(128L);\n" \
	"  int64_t num_head = static_cast<int64_t>(4L);\n" \
	"  int64_t headSize = static_cast<int64_t>(16L);\n" \
	"  int64_t batchSize_k = static_cast<int64_t>(1L);\n" \
	"  int64_t num_head_k = static_cast<int64_t>(2L);\n" \
	"  int64_t headSize_v = static_cast<int64_t>(24L);\n"
/* clang-format on */

static const struct {
	const char *text;
	uint64_t all, counter;
} known[] = {
	{KERNEL("graph_0_cpp_fused_add_div_0", INPUTS, CHAIN), 6 * 224 + 7, 0},
	{KERNEL("cpp_fused_sin_0", INPUTS, TAIL), 7 * 33, 0},
	{KERNEL("graph_12_cpp_fused_sum_3", INPUTS, SUMS), 16 * 100, 0},
	{KERNEL("cpp_fused_add_0", INPUTS, INTEGERS), 500, 0},
	{KERNEL("cpp_fused_rand_sigmoid_sign_0", INPUTS, FUNCTIONS), 300, 0},
	{KERNEL("cpp_fused_index_put_0", INPUTS, ADDS_INTO_MEMORY), 100, 0},
	{KERNEL("cpp_fused_constant_pad_nd_0", INPUTS, MASKED), 100, 0},
	{KERNEL("cpp_fused_var_mean_0", INPUTS, WELFORD), 400, 0},
	/* A product that became sums, and one that became a multiplication alone */
	{KERNEL("graph_0_cpp_fused_bmm_0", INPUTS, PRODUCT_OF("16L")), 2 * 4 * 16, 2 * 4 * 16},
	{KERNEL("cpp_fused_mm_relu_0", INPUTS, OUTER), 300, 200},
	/* The product is elsewhere, its name is here for what follows it; and no product */
	{KERNEL("cpp_fused_addmm_tanh_0", INPUTS, WELFORD), 400, 0},
	{KERNEL("cpp_fused_mul_0", INPUTS, PRODUCT), 100, 0},
	{ATTENTION "  int64_t kvSize = static_cast<int64_t>(192L);\n}\n",
	 2u * 2 * 4 * 128 * 192 * (16 + 24), 2u * 2 * 4 * 128 * 192 * (16 + 24)},
};

static void statements_count_for_each_element_of_their_loops(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		struct cpp_kernel kernel = torsh_cpp_kernel_count(known[i].text);

		if (kernel.reason || kernel.counter_reason || kernel.all != known[i].all ||
		    kernel.counter != known[i].counter)
			fail_msg("%zu: %llu, %llu (%s) instead of %llu, %llu", i,
				 (unsigned long long)kernel.all, (unsigned long long)kernel.counter,
				 kernel.reason ? kernel.reason : "",
				 (unsigned long long)known[i].all,
				 (unsigned long long)known[i].counter);
	}
}

static const char *const unknown[] = {
	"",
	"extern \"C\"\n{\n}\n",
	/* Sizes that the program chooses, and too large ones */
	KERNEL("cpp_fused_0", INPUTS ",\n const int64_t ks0",
	       "{\n" LOOP("x0", "ks0", "1") "{\n" SCALARS "auto tmp4 = std::exp(tmp0);\n}\n}\n"),
	KERNEL("cpp_fused_0", INPUTS,
	       "{\n" LOOP("x0", "4294967296L", "1") "{\n" LOOP(
		       "x1", "4294967296L", "1") "{\n" SCALARS
						 "auto tmp4 = std::exp(tmp0);\n}\n}\n}\n"),
	/* Functions and forms that nobody knows */
	KERNEL("cpp_fused_0", INPUTS, X0_OF_100(SCALARS "auto tmp4 = frobnicate(tmp0);\n")),
	KERNEL("cpp_fused_0", INPUTS, X0_OF_100(SCALARS "frobnicate(tmp0);\n")),
	KERNEL("cpp_fused_0", INPUTS, X0_OF_100("auto tmp4 = tmp0 + tmp1;\n")),
	KERNEL("cpp_fused_0", INPUTS,
	       X0_OF_100(SCALARS "out_ptr0[static_cast<int64_t>(x0)] = tmp0 + tmp1;\n")),
	KERNEL("cpp_fused_0", "const c10::complex<float>* in_ptr0",
	       X0_OF_100("auto tmp0 = in_ptr0[static_cast<int64_t>(x0)];\n"
			 "auto tmp1 = tmp0 * tmp0;\n")),
	KERNEL("cpp_fused_0", INPUTS,
	       X0_OF_100(SCALARS "auto tmp99999999999999999999 = std::exp(tmp0);\n")),
	/* Only for some elements: under another condition, and in a function in place */
	KERNEL("cpp_fused_0", INPUTS,
	       X0_OF_100(SCALARS "if (tmp2)\n{\nauto tmp4 = std::exp(tmp0);\n}\n")),
	KERNEL("cpp_fused_0", INPUTS,
	       X0_OF_100(SCALARS "auto tmp4 = [&]\n{\nauto tmp5 = std::exp(tmp0);\nreturn tmp5;\n}"
				 "\n;\n")),
	KERNEL("cpp_fused_0", INPUTS,
	       "for (int i = 0; i < 2; i++)\n{\n" SCALARS "auto tmp4 = std::exp(tmp0);\n}\n"),
	KERNEL("cpp_fused_0", INPUTS, "{\n"),
	ATTENTION "  int64_t kvSize = static_cast<int64_t>(ks0);\n}\n",
	ATTENTION "  int64_t kvSize = static_cast<int64_t>(18446744073709551615L);\n}\n",
	ATTENTION "}\n",
};

static void other_sources_are_unknown(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++) {
		struct cpp_kernel kernel = torsh_cpp_kernel_count(unknown[i]);

		if (!kernel.reason)
			fail_msg("%zu has %llu FLOPs", i, (unsigned long long)kernel.all);
	}
}

/* Which of the multiplications is the product's? */
static void a_product_among_others_is_unknown_to_the_counter(void **state)
{
	struct cpp_kernel kernel = torsh_cpp_kernel_count(
		KERNEL("cpp_fused_gelu_mm_0", INPUTS,
		       X0_OF_100(SCALARS "auto tmp4 = float(tmp0 * tmp0);\n"
					 "auto tmp5 = float(tmp4 * tmp0);\n")));

	(void)state;
	assert_null(kernel.reason);
	assert_non_null(kernel.counter_reason);
}

static void only_kernels_have_their_names(void **state)
{
	(void)state;
	assert_true(torsh_is_cpp_kernel("graph_0_cpp_fused_mm_0"));
	assert_true(torsh_is_cpp_kernel("graph_117_cpp_fused_0"));
	assert_true(torsh_is_cpp_kernel("cpp_fused_add_1"));
	assert_false(torsh_is_cpp_kernel("graph_0_gemm_m16n64k32_kernel"));
	assert_false(torsh_is_cpp_kernel("aten::cpp_fused_add_1"));
	assert_false(torsh_is_cpp_kernel("graph_"));
	assert_false(torsh_is_cpp_kernel(""));
}

/* Sources come from files that anybody may have written. */
static void any_source_is_survived(void **state)
{
	static const char marks[] = "{}()[]<>=;,&*. \n0tx\"\0";
	uint64_t random = 11;
	char text[4000];

	(void)state;
	for (size_t round = 0; round < 6000; round++) {
		size_t i = round % (sizeof(known) / sizeof(*known)), n;

		strncpy(text, known[i].text, sizeof(text) - 1);
		text[sizeof(text) - 1] = '\0';
		n = strlen(text);
		for (size_t k = 0; k < 1 + round % 5; k++)
			text[random_below(&random, n)] =
				marks[random_below(&random, sizeof(marks) - 1)];
		torsh_cpp_kernel_count(text);
		text[random_below(&random, n)] = '\0';
		torsh_cpp_kernel_count(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(statements_count_for_each_element_of_their_loops),
		cmocka_unit_test(other_sources_are_unknown),
		cmocka_unit_test(a_product_among_others_is_unknown_to_the_counter),
		cmocka_unit_test(only_kernels_have_their_names),
		cmocka_unit_test(any_source_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
