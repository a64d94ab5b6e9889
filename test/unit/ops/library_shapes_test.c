/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Shapes of calls: the sizes of the product that stands for them, against counts of plain loops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tools/ops/library_flops.h"
#include "tools/ops/library_shapes.h"

static struct recorded_library_call shaped(const char *routine, const char *shape)
{
	struct recorded_library_call call = {.routine = routine, .shape = shape, .type = 's'};

	torsh_library_set_sizes(&call);
	return call;
}

static uint64_t flops_of(const char *routine, const char *shape)
{
	const struct recorded_library_call call = shaped(routine, shape);
	uint64_t flops;

	assert_null(torsh_library_flops(&call, &flops));
	return flops;
}

static void assert_unknown(const char *routine, const char *shape)
{
	const struct recorded_library_call call = shaped(routine, shape);
	uint64_t flops;

	assert_int_equal(call.m | call.n | call.k | call.batch, 0);
	assert_non_null(torsh_library_flops(&call, &flops));
}

/* A multiplication and an addition for each weight at each point of what is written. */
static uint64_t count_convolution(int n, int groups, int in, int out, int points, int kernel)
{
	uint64_t count = 0;

	for (int image = 0; image < n; image++)
		for (int channel = 0; channel < out; channel++)
			for (int point = 0; point < points; point++)
				count += 2u * (unsigned)(in / groups) * (unsigned)kernel;
	return count;
}

static void convolutions_are_counted_as_loops(void **state)
{
	(void)state;
	/* oneDNN's weights with groups, cuDNN's, and neither. */
	assert_int_equal(flops_of("convolution", "2x6x12x10:2x4x3x3x3:2x8x10x8"),
			 count_convolution(2, 2, 6, 8, 80, 9));
	assert_int_equal(flops_of("convolution", "2x6x12x10:8x3x3x3:2x8x10x8"),
			 count_convolution(2, 2, 6, 8, 80, 9));
	assert_int_equal(flops_of("convolution", "3x5x20:7x5x4:3x7x17"),
			 count_convolution(3, 1, 5, 7, 17, 4));
	assert_int_equal(flops_of("convolution", "1x4x6x6x6:4x1x1x2x2x2:1x4x5x5x5"),
			 count_convolution(1, 4, 4, 4, 125, 8));
	assert_int_equal(
		flops_of("convolution", "mb2_g2ic6oc8_ih12oh10kh3sh1dh0ph0_iw10ow8kw3sw1dw0pw0"),
		count_convolution(2, 2, 6, 8, 80, 9));
	assert_int_equal(flops_of("convolution", "mb1_ic3oc4_iw9ow8kw2sw1dw0pw0"),
			 count_convolution(1, 1, 3, 4, 8, 2));
	assert_int_equal(shaped("convolution", "2x6x12x10:2x4x3x3x3:2x8x10x8").batch, 3);
}

/* The points of what is read, each of which spreads over the kernel. */
static void transposed_convolutions_count_what_is_read(void **state)
{
	(void)state;
	assert_int_equal(flops_of("deconvolution", "2x6x5x5:4x6x3x3:2x4x7x7"),
			 2 * 2 * 25 * 6 * 4 * 9);
	assert_int_equal(flops_of("deconvolution", "2x6x5x5:2x2x3x3x3:2x4x7x7"),
			 2 * 2 * 25 * 6 * 2 * 9);
	assert_int_equal(
		flops_of("deconvolution", "mb2_ic6oc4_ih5oh7kh3sh1dh0ph0_iw5ow7kw3sw1dw0pw0"),
		2 * 2 * 25 * 6 * 4 * 9);
}

static void products_have_a_batch(void **state)
{
	(void)state;
	assert_int_equal(flops_of("matmul", "64x96:96x32"), 2 * 64 * 96 * 32);
	assert_int_equal(flops_of("matmul", "5x12x20:5x20x8:5x12x8"), 2 * 5 * 12 * 20 * 8);
	assert_int_equal(flops_of("matmul", "5x1x12x20:1x3x20x8:5x3x12x8"), 2 * 15 * 12 * 20 * 8);
	assert_int_equal(flops_of("inner_product", "7x3x4x4:10x3x4x4:7x10"), 2 * 7 * 48 * 10);
	assert_int_equal(flops_of("inner_product", "mb7ic3ih4iw4oc10"), 2 * 7 * 48 * 10);
}

static void other_shapes_stay_unknown(void **state)
{
	(void)state;
	assert_unknown("matmul", "64x96");
	assert_unknown("matmul", "64x96:32");
	assert_unknown("matmul", "64x?:96x32:64x32");
	assert_unknown("matmul", "64x96:96x32:64x32:1");
	assert_unknown("matmul", "99999999999999999999x96:96x32");
	assert_unknown("convolution", "2x6x12x10:8x3x3x3");
	assert_unknown("convolution", "2x6x12x10:3x3:2x8x10x8");
	assert_unknown("convolution", "mb2_ic6");
	assert_unknown("convolution", "");
	assert_unknown("convolution", "mbic3oc8");
	assert_unknown("reorder", "2x8x30x30");
	assert_unknown("convolution", "1x1x1x1x1x1x1x1x1x1x1x1x1:1:1");
}

static void transforms_have_their_nominal_count(void **state)
{
	struct recorded_library_call call = {.routine = "fft_c2c", .type = 'z', .n = 1025};
	uint64_t flops;

	(void)state;
	assert_null(torsh_library_flops(&call, &flops));
	assert_int_equal(flops, 5 * 1024 * 10);
	call.batch = 4;
	assert_null(torsh_library_flops(&call, &flops));
	assert_int_equal(flops, 3 * 5 * 1024 * 10);
	call = (struct recorded_library_call){.routine = "fft_r2c", .type = 's', .n = 61};
	assert_null(torsh_library_flops(&call, &flops));
	assert_int_equal(flops, 886); /* 885.98 */
	call.n = 2;
	assert_null(torsh_library_flops(&call, &flops));
	assert_int_equal(flops, 0);
	call.n = 0;
	assert_non_null(torsh_library_flops(&call, &flops));
	call = (struct recorded_library_call){.routine = "fft_plan", .type = 'z', .n = 9};
	assert_non_null(torsh_library_flops(&call, &flops));
	assert_string_equal(torsh_library_type('b'), "bfloat16");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(convolutions_are_counted_as_loops),
		cmocka_unit_test(transposed_convolutions_count_what_is_read),
		cmocka_unit_test(products_have_a_batch),
		cmocka_unit_test(other_shapes_stay_unknown),
		cmocka_unit_test(transforms_have_their_nominal_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
