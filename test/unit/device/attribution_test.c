/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What texts give away of operators: those of ranges, of kernels, of the code that Inductor leaves
 * behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tools/device/kernels/attribution.h"

static void ranges_of_operators_are_distinguished_from_others(void **state)
{
	static const struct {
		const char *text, *name; /* "": none */
	} ranges[] = {
		{"aten::add", "aten::add"},
		{"aten::add, seq = 5, op_id = 3, sizes = [[2, 2]], input_op_ids = [(1,0)]",
		 "aten::add"},
		{"my_library::fused_op", "my_library::fused_op"},
		{"aten::add.Tensor", "aten::add"},
		{"quantized::linear_dynamic", "quantized::linear_dynamic"},
		{"step 5", ""},
		{"aten", ""},
		{"aten::", ""},
		{"::add", ""},
		{"9x::add", ""},
		{"prims::add", ""},
		{"torch::autograd", ""},
		{"layer::unique::block_0", ""},
		{"autograd::engine::evaluate_function: AddBackward0", ""},
		{"std::vector<int>", ""},
		{"a::b::c", ""},
		{"aten::add and more", ""},
		{"aten::add.", ""},
		{"", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++) {
		size_t n = torsh_attribution_operator_in(ranges[i].text);

		assert_int_equal(n, strlen(ranges[i].name));
		assert_memory_equal(ranges[i].text, ranges[i].name, n);
	}
}

static void kernels_have_the_family_of_their_name(void **state)
{
	static const char *const kernels[][2] = {
		{"ampere_sgemm_32x32_sliced1x4_tn", "gemm"},
		{"cutlass_80_tensorop_s1688gemm_64x64", "gemm"},
		{"_ZN7cutlass6KernelI62cutlass_80_wmma_tensorop_bf16_s161616gemm", "gemm"},
		{"sm80_xmma_fprop_implicit_gemm_f32f32", "conv"},
		{"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_", "elementwise"},
		{"_ZN2at6native13reduce_kernelILi512ELi1E", "reduction"},
		{"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
		 "nccl"},
		{"triton_poi_fused_add_relu_0", "triton_pointwise"},
		{"triton_per_fused_native_layer_norm_1", "triton_reduction"},
		{"saxpy", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(kernels) / sizeof(*kernels); i++) {
		const char *family = torsh_attribution_family(kernels[i][0]);

		if (kernels[i][1])
			assert_string_equal(family, kernels[i][1]);
		else
			assert_null(family);
	}
}

/* ---- Inductor -------------------------------------------------------------------------------- */

static const char code[] =
	"# AOT ID: ['0_inference']\n"
	"# Topologically Sorted Source Nodes: [add, relu], Original ATen: [aten.add, aten.relu, aten.add]\n"
	"# Source node to ATen node mapping:\n"
	"#   add => add\n"
	"triton_poi_fused_add_relu_0 = async_compile.triton('triton_poi_fused_add_relu_0', '''\n"
	"def triton_poi_fused_add_relu_0(in_ptr0, out_ptr0, xnumel, XBLOCK):\n"
	"''', device_str='cuda')\n"
	"def call(args):\n"
	"        # Topologically Sorted Source Nodes: [linear], Original ATen: [aten.mm]\n"
	"        extern_kernels.mm(arg0_1, arg1_1, out=buf0)\n"
	"        # Topologically Sorted Source Nodes: [add, relu], Original ATen: [aten.add, aten.relu]\n"
	"        stream0 = get_raw_stream(0)\n"
	"        triton_poi_fused_add_relu_0.run(buf1, 4, stream=stream0)\n"
	"        triton_poi_fused_unsaid_1.run(buf1, 4, stream=stream0)\n";

static void kernels_of_inductor_are_what_their_comment_lists(void **state)
{
	struct inductor inductor = {0};
	const struct inductor_kernel *kernel;

	(void)state;
	torsh_inductor_parse(&inductor, code);
	torsh_inductor_sort(&inductor);
	kernel = torsh_inductor_find(&inductor, "triton_poi_fused_add_relu_0");
	assert_non_null(kernel);
	assert_int_equal(kernel->n_operators, 2);
	assert_string_equal(kernel->operators[0], "aten::add");
	assert_string_equal(kernel->operators[1], "aten::relu");
	assert_null(torsh_inductor_find(&inductor, "triton_poi_fused_unsaid_1"));
	assert_null(torsh_inductor_find(&inductor, "triton_poi_fused_add_relu_01"));
	assert_null(torsh_inductor_find(NULL, "triton_poi_fused_add_relu_0"));
	torsh_inductor_free(&inductor);
}

static void ambiguous_kernel_names_are_not_used(void **state)
{
	struct inductor inductor = {0};

	(void)state;
	torsh_inductor_parse(&inductor, code);
	torsh_inductor_parse(&inductor,
			     "# Original ATen: [aten.mul]\nx = async_compile.triton('x', '''\n");
	torsh_inductor_parse(&inductor,
			     "# Original ATen: [aten.mul]\n  triton_poi_fused_add_relu_0.run(a)\n");
	torsh_inductor_sort(&inductor);
	assert_null(torsh_inductor_find(&inductor, "triton_poi_fused_add_relu_0"));
	assert_non_null(torsh_inductor_find(&inductor, "x"));
	torsh_inductor_free(&inductor);
}

static const struct inductor_kernel *kernel_after(struct inductor *inductor, const char *graph)
{
	char text[200];

	snprintf(text, sizeof(text),
		 "# kernel path: /a\n# Original ATen: [aten.mm]\n%s"
		 "x = async_compile.triton('x', '''\n"
		 "# Original ATen: [aten.mm]\n  x.run(a)\n",
		 graph);
	torsh_inductor_parse(inductor, text);
	torsh_inductor_sort(inductor);
	return torsh_inductor_find(inductor, "x");
}

static void kernels_of_inductor_keep_the_graphs_over_their_definitions(void **state)
{
	struct inductor inductor = {0};
	const struct inductor_kernel *kernel;

	(void)state;
	kernel = kernel_after(&inductor, "#   %a\n");
	assert_int_equal(kernel->n_comments, 1);
	assert_string_equal(kernel->comments[0], "# Original ATen: [aten.mm]\n#   %a\n");
	kernel = kernel_after(&inductor, "#   %b\n");
	assert_int_equal(kernel->n_comments, 2);
	kernel = kernel_after(&inductor, "#   %a\n");
	assert_int_equal(kernel->n_comments, 2);
	torsh_inductor_free(&inductor);
	torsh_inductor_parse(&inductor, "# Original ATen: [aten.mm]\n  x.run(a)\n");
	torsh_inductor_sort(&inductor);
	assert_int_equal(torsh_inductor_find(&inductor, "x")->n_comments, 0);
	torsh_inductor_free(&inductor);
}

static void kernels_with_too_many_graphs_are_not_used(void **state)
{
	struct inductor inductor = {0};

	(void)state;
	for (int i = 0; i < 65; i++) {
		char graph[20];

		snprintf(graph, sizeof(graph), "#   %%a%d\n", i);
		if (!kernel_after(&inductor, graph) != (i == 64))
			fail_msg("after %d graphs", i + 1);
	}
	torsh_inductor_free(&inductor);
}

static void damaged_code_of_inductor_is_read_over(void **state)
{
	static const char *const texts[] = {"",
					    "Original ATen: [",
					    "Original ATen: [aten.add",
					    "Original ATen: [.,]\nx.run(",
					    "Original ATen: [aten]\nx.run(\n",
					    "Original ATen: [aten.add]\n.run(",
					    "Original ATen: [aten.add]\nx.run",
					    "Original ATen: []\nx.run(\n"};
	struct inductor inductor = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		torsh_inductor_parse(&inductor, texts[i]);
	torsh_inductor_sort(&inductor);
	assert_int_equal(inductor.n, 0);
	torsh_inductor_free(&inductor);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_of_operators_are_distinguished_from_others),
		cmocka_unit_test(kernels_have_the_family_of_their_name),
		cmocka_unit_test(kernels_of_inductor_are_what_their_comment_lists),
		cmocka_unit_test(ambiguous_kernel_names_are_not_used),
		cmocka_unit_test(kernels_of_inductor_keep_the_graphs_over_their_definitions),
		cmocka_unit_test(kernels_with_too_many_graphs_are_not_used),
		cmocka_unit_test(damaged_code_of_inductor_is_read_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
