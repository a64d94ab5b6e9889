/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* FLOPs of Triton kernels by comments as Inductor (torch 2.15) wrote them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/unit/fixtures/random.h"
#include "tools/ops/fused_flops.h"

#define NODE(name, sizes, target, arguments)                                 \
	"#   %" name " : Tensor \"f32[" sizes "][1]cuda:0\"[num_users=1] = " \
	"call_function[target=torch.ops." target "](args = (" arguments "), kwargs = {})\n"
#define READ(name, sizes) \
	"#   %" name " : Tensor \"f32[" sizes "][1]cuda:0\" = PlaceHolder[target=" name "]\n"
#define ATEN(list)                                                               \
	"# Topologically Sorted Source Nodes: [mm], Original ATen: [" list "]\n" \
	"# Source node to ATen node mapping:\n"                                  \
	"#   mm => mul_3\n"                                                      \
	"# Graph fragment:\n"

#define COLUMN_BY_ROW                                                       \
	READ("primals_1", "8, 32")                                          \
	READ("primals_6", "1, 16")                                          \
	NODE("slice_1", "8, 1", "aten.slice.Tensor", "%primals_1, 1, 0, 1") \
	NODE("mul_3", "8, 16", "aten.mul.Tensor", "%slice_1, %primals_6")
#define GELU_OF(of)                                             \
	NODE("mul", "8, 64", "aten.mul.Tensor", "%" of ", 0.5") \
	NODE("erf", "8, 64", "aten.erf.default", "%mul")        \
	NODE("mul_2", "8, 64", "aten.mul.Tensor", "%mul, %erf")

static const struct {
	const char *name, *comment;
	uint64_t n;
} known[] = {
	{"triton_poi_fused_gelu_0", ATEN("aten.gelu") READ("addmm", "8, 64") GELU_OF("addmm"), 0},
	{"triton_poi_fused_mm_relu_1",
	 ATEN("aten.slice, aten.mm, aten.relu, aten.threshold_backward")
		 COLUMN_BY_ROW NODE("relu", "8, 16", "aten.relu.default", "%mul_3"),
	 2 * 8 * 16},
	{"triton_poi_fused_bmm_unsqueeze_2",
	 ATEN("aten.unsqueeze, aten.bmm") READ("primals_1", "8, 32")
		 NODE("unsqueeze", "8, 32, 1", "aten.unsqueeze.default", "%primals_1, 2") NODE(
			 "unsqueeze_1", "8, 1, 32", "aten.unsqueeze.default", "%primals_1, 1")
			 NODE("mul_4", "8, 32, 32", "aten.mul.Tensor", "%unsqueeze, %unsqueeze_1"),
	 2 * 8 * 32 * 32},
	/* A vector by a matrix, as it is with coordinate descent tuning. */
	{"triton_per_fused_mm_0",
	 ATEN("aten.mm") READ("a", "1, 12") READ("b", "12, 20")
		 NODE("unsqueeze", "1, 12, 1", "aten.unsqueeze.default",
		      "%a, 2") NODE("unsqueeze_1", "1, 12, 20", "aten.unsqueeze.default", "%b, 0")
			 NODE("mul", "1, 12, 20", "aten.mul.Tensor", "%unsqueeze, %unsqueeze_1")
				 NODE("sum_1", "1, 20", "aten.sum.dim_IntList", "%mul, [1]"),
	 2 * 12 * 20},
	/* The product is another kernel's, and so are the bias and the activation behind it. */
	{"triton_poi_fused_addmm_gelu_0",
	 ATEN("aten.addmm, aten.gelu") READ("mm_default", "8, 64") READ("bias", "64")
		 NODE("add_tensor", "8, 64", "aten.add.Tensor", "%mm_default, %bias")
			 GELU_OF("add_tensor"),
	 0},
	{"triton_poi_fused_addmm_gelu_1",
	 ATEN("aten.addmm, aten.gelu") READ("_scaled_mm_1", "8, 64") GELU_OF("_scaled_mm_1"), 0},
	{"triton_poi_fused_addmm_gelu_2",
	 ATEN("aten.addmm, aten.gelu") READ("_scaled_mm", "8, 64") GELU_OF("_scaled_mm"), 0},
	{"triton_poi_fused_convolution_0",
	 ATEN("aten.convolution") READ("x", "2, 3, 12, 12")
		 NODE("convolution", "2, 8, 10, 10", "aten.convolution.default",
		      "%x, %w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1"),
	 0},
	{"triton_tem_fused_mm_relu_t_1",
	 ATEN("aten.t, aten.mm, aten.relu") READ("x", "8, 32") READ("w", "64, 32")
		 NODE("permute", "32, 64", "aten.permute.default", "%w, [1, 0]")
			 NODE("mm", "8, 64", "aten.mm.default", "%x, %permute")
				 NODE("relu", "8, 64", "aten.relu.default", "%mm"),
	 2 * 8 * 32 * 64},
	{"triton_tem_fused_addmm_0",
	 ATEN("aten.addmm") READ("b", "64") READ("x", "8, 32") READ("w", "32, 64")
		 NODE("addmm", "8, 64", "aten.addmm.default", "%b, %x, %w"),
	 2 * 8 * 32 * 64},
	{"triton_tem_fused_convolution_0",
	 ATEN("aten.convolution") READ("x", "2, 3, 12, 12") READ("w", "8, 3, 3, 3")
		 NODE("convolution", "2, 8, 10, 10", "aten.convolution.default",
		      "%x, %w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1"),
	 2 * 2 * 8 * 10 * 10 * 3 * 3 * 3},
	/* It reads what it writes itself. */
	{"triton_tem_fused_mm_relu_t_threshold_backward_0",
	 ATEN("aten.t, aten.mm, aten.relu") READ("x", "8, 32") READ("w", "64, 32") READ(
		 "mm", "8, 64") READ("relu", "8, 64") NODE("permute", "32, 64",
							   "aten.permute.default", "%w, [1, 0]")
		 NODE("mm", "8, 64", "aten.mm.default", "%x, %permute")
			 NODE("relu", "8, 64", "aten.relu.default", "%mm") "#   return %mm,%relu\n",
	 2 * 8 * 32 * 64},
	/* Before its own product it reads that of another. */
	{"triton_tem_fused_mm_1",
	 ATEN("aten.mm") READ("mm", "8, 32") READ("w", "32, 64")
		 NODE("mm", "8, 32", "aten.mm.default", "%x, %v")
			 NODE("mm_1", "8, 64", "aten.mm.default", "%mm, %w") "#   return %mm_1\n",
	 2 * 8 * 32 * 64},
};

static void products_count_where_they_are_computed(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		struct fused_flops flops = torsh_fused_flops_of(known[i].name, known[i].comment);

		if (flops.reason || flops.n != known[i].n)
			fail_msg("%s: %llu (%s) instead of %llu", known[i].name,
				 (unsigned long long)flops.n, flops.reason ? flops.reason : "",
				 (unsigned long long)known[i].n);
	}
}

static const char *const unknown[][2] = {
	{"triton_poi_fused_mm_0", NULL},
	{"triton_poi_fused_mm_0", ""},
	{"triton_poi_fused_mm_0", "# Original ATen: [aten.mm]\n"},
	/* Which multiplication is the product's? */
	{"triton_poi_fused_gelu_mm_0",
	 ATEN("aten.mm, aten.gelu") COLUMN_BY_ROW READ("y", "8, 64") GELU_OF("y")},
	{"triton_per_fused_mul_mm_sum_0",
	 ATEN("aten.mm, aten.mul, aten.sum") READ("mm_1", "8, 16") COLUMN_BY_ROW},
	/* Sizes that the program chooses */
	{"triton_poi_fused_mm_0", ATEN("aten.mm") READ("a", "s0, 1") READ("b", "1, 16")
					  NODE("mul", "s0, 16", "aten.mul.Tensor", "%a, %b")},
	{"triton_tem_fused_mm_0", ATEN("aten.mm") READ("x", "s0, 32") READ("w", "32, 64")
					  NODE("mm", "s0, 64", "aten.mm.default", "%x, %w")},
	{"triton_tem_fused_mm_0",
	 ATEN("aten.mm") READ("x", "8, 32") NODE("mm", "8, 64", "aten.mm.default", "%x, %w")},
	{"triton_tem_fused_mm_0",
	 ATEN("aten.mm") READ("x", "8, 8") NODE("mm", "8, 8", "aten.mm.default", "%x, %x")
		 NODE("mm_1", "8, 8", "aten.mm.default", "%mm, %x")},
	/* Sizes that are no sizes, and that are too large */
	{"triton_poi_fused_mm_0", ATEN("aten.mm") READ("a", "-1, 1") READ("b", "1, 16")
					  NODE("mul", "-1, 16", "aten.mul.Tensor", "%a, %b")},
	{"triton_poi_fused_mm_0", ATEN("aten.mm") READ("a", "1, 1") READ("b", "1, 1")
					  NODE("mul", "1, +1", "aten.mul.Tensor", "%a, %b")},
	{"triton_poi_fused_mm_0",
	 ATEN("aten.mm") READ("a", "1, 1") READ("b", "1, 1")
		 NODE("mul", "4294967296, 4294967296", "aten.mul.Tensor", "%a, %b")},
	{"triton_poi_fused_mm_0",
	 ATEN("aten.mm") READ("a", "1, 1") READ("b", "1, 1")
		 NODE("mul", "18446744073709551616", "aten.mul.Tensor", "%a, %b")},
	{"triton_tem_fused_mm_0", ATEN("aten.mm") READ("x", "-1, 32") READ("w", "32, 64")
					  NODE("mm", "-1, 64", "aten.mm.default", "%x, %w")},
	{"triton_tem_fused_mm_0",
	 ATEN("aten.mm") READ("x", "4294967296, 4294967296") READ("w", "4294967296, 64")
		 NODE("mm", "4294967296, 64", "aten.mm.default", "%x, %w")},
	/* Buffers that are not called as a product's node is */
	{"triton_poi_fused_addmm_gelu_0",
	 ATEN("aten.addmm, aten.gelu") READ("mm_mask", "8, 64") GELU_OF("mm_mask")},
	{"triton_poi_fused_addmm_gelu_0",
	 ATEN("aten.addmm, aten.gelu") READ("mm_", "8, 64") GELU_OF("mm_")},
	{"triton_tem_fused_0", ATEN("flex_attention") READ("x", "8, 8")},
	{"triton_tem_fused_relu_0",
	 ATEN("aten.relu") READ("x", "8, 8") NODE("relu", "8, 8", "aten.relu.default", "%x")},
	/* With Inductor's own matrix product in a reduction */
	{"triton_red_fused_mm_0",
	 ATEN("aten.mm") READ("x", "8, 8") NODE("mm", "8, 8", "aten.mm.default", "%x, %x")},
};

static void what_a_graph_does_not_tell_is_unknown(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++) {
		if (!torsh_fused_flops_of(unknown[i][0], unknown[i][1]).reason)
			fail_msg("%s (%zu) has FLOPs", unknown[i][0], i);
	}
}

/* Comments come from files that anybody may have written. */
static void any_comment_is_survived(void **state)
{
	uint64_t random = 7;
	char text[2000];

	(void)state;
	for (size_t round = 0; round < 4000; round++) {
		size_t i = round % (sizeof(known) / sizeof(*known)), n;

		strncpy(text, known[i].comment, sizeof(text) - 1);
		text[sizeof(text) - 1] = '\0';
		n = strlen(text);
		for (size_t k = 0; k < 1 + round % 4; k++)
			text[random_below(&random, n)] = "%[](),= \n0\0"[random_below(&random, 11)];
		torsh_fused_flops_of(known[i].name, text);
		text[random_below(&random, n)] = '\0';
		torsh_fused_flops_of(known[i].name, text);
	}
}

static char *repeat(const char *line, size_t n_bytes)
{
	size_t n = strlen(line), n_lines = n_bytes / n;
	char *text = malloc(n_lines * n + 1);

	assert_non_null(text);
	for (size_t i = 0; i < n_lines; i++)
		memcpy(text + i * n, line, n);
	text[n_lines * n] = '\0';
	return text;
}

/* Nothing is searched for beyond its line: else these take minutes. */
static void large_comments_are_read_in_one_pass(void **state)
{
	static const char *const lines[] = {
		"% [target= = PlaceHolder[\n",
		"% [target= = Placeholder(\n",
		"% : Tensor \"f32 [target=torch.ops.aten.mm.default\n",
		"Original ATen: \n",
		"Original ATen: [a, \n",
		"#   return %a\n",
		"%a [target=torch.ops.aten.mm.default](args = (%a, ",
		"#   return %a,",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		char *text = repeat(lines[i], 8u << 20);

		if (!torsh_fused_flops_of("triton_tem_fused_mm_0", text).reason)
			fail_msg("'%s' has FLOPs", lines[i]);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(products_count_where_they_are_computed),
		cmocka_unit_test(what_a_graph_does_not_tell_is_unknown),
		cmocka_unit_test(any_comment_is_survived),
		cmocka_unit_test(large_comments_are_read_in_one_pass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
