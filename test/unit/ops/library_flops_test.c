/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * FLOPs of routines of BLAS and LAPACK: known numbers, and counts of the plain algorithms, which
 * are run on paper here: each loop adds what its body would compute.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tools/ops/library_flops.h"

#define NONE (-1)

static uint64_t flops_of(const char *routine, int64_t m, int64_t n, int64_t k, const char *letters)
{
	struct recorded_library_call call = {
		.routine = routine,
		.type = (uint8_t)routine[0],
		.m = (uint64_t)(m + 1),
		.n = (uint64_t)(n + 1),
		.k = (uint64_t)(k + 1),
	};
	uint64_t flops;

	for (size_t i = 0; letters[i]; i++)
		call.letters |= (uint32_t)letters[i] << 8 * i;
	assert_null(torsh_library_flops(&call, &flops));
	return flops;
}

static void products_are_two_operations_for_each_term(void **state)
{
	(void)state;
	assert_int_equal(flops_of("dgemm", 3, 4, 5, "NN"), 2 * 3 * 4 * 5);
	assert_int_equal(flops_of("zgemm", 3, 4, 5, "NN"), 8 * 3 * 4 * 5);
	assert_int_equal(flops_of("dgemm", 0, 4, 5, "NN"), 0);
	assert_int_equal(flops_of("dgemm", 100000, 100000, 100000, "NN"),
			 UINT64_C(2000000000000000));
	assert_int_equal(flops_of("dgemm", 5000000, 5000000, 5000000, "NN"), UINT64_MAX);
	assert_int_equal(flops_of("dsymm", 3, 4, NONE, "LU"), 2 * 3 * 3 * 4);
	assert_int_equal(flops_of("dsymm", 3, 4, NONE, "RU"), 2 * 3 * 4 * 4);
	assert_int_equal(flops_of("dsyrk", NONE, 4, 5, "UN"), 5 * 4 * 5);
	assert_int_equal(flops_of("sgemv", 3, 4, NONE, "N"), 2 * 3 * 4);
	assert_int_equal(flops_of("dsyr", NONE, 4, NONE, "U"), 4 * 5);
}

/* Substitution, one division for each row. */
static uint64_t count_solve(uint64_t n, uint64_t rights)
{
	uint64_t count = 0;

	for (uint64_t i = 0; i < n; i++)
		count += 2 * i + 1;
	return count * rights;
}

static void triangles_are_counted_as_by_substitution(void **state)
{
	(void)state;
	for (int64_t n = 1; n < 30; n++) {
		assert_int_equal(flops_of("dtrsm", n, 7, NONE, "LUNN"),
				 count_solve((uint64_t)n, 7));
		assert_int_equal(flops_of("dtrsm", 7, n, NONE, "RUNN"),
				 count_solve((uint64_t)n, 7));
		assert_int_equal(flops_of("dtrmm", n, 7, NONE, "LUNN"),
				 count_solve((uint64_t)n, 7));
		assert_int_equal(flops_of("dtrsv", NONE, n, NONE, "UNN"),
				 count_solve((uint64_t)n, 1));
		assert_int_equal(flops_of("dtrtrs", NONE, n, 7, "UNN"),
				 count_solve((uint64_t)n, 7));
	}
}

/* Right-looking elimination: a division for each row below, then the update; and n for pivots. */
static uint64_t count_lu(uint64_t m, uint64_t n)
{
	uint64_t count = 0, steps = m < n ? m : n;

	for (uint64_t j = 0; j < steps; j++)
		count += (m - j - 1) + 2 * (m - j - 1) * (n - j - 1);
	return count;
}

static void factorisations_are_counted_as_by_elimination(void **state)
{
	(void)state;
	/* Working Note 41 counts a reciprocal for each pivot, which a division doesn't need. */
	for (uint64_t n = 1; n < 30; n++)
		for (uint64_t m = n; m < 40; m += 3)
			assert_int_equal(flops_of("dgetrf", (int64_t)m, (int64_t)n, NONE, ""),
					 count_lu(m, n) + n);
	/* n^3/3 + n^2/2 + n/6 */
	assert_int_equal(flops_of("dpotrf", NONE, 6, NONE, "U"), 72 + 18 + 1);
	/* 2n^2 for each right-hand side, but the divisions of a unit triangle */
	assert_int_equal(flops_of("dgetrs", NONE, 6, 3, "N"), 3 * (2 * 36 - 6));
	assert_int_equal(flops_of("dgesv", NONE, 6, 3, ""),
			 flops_of("dgetrf", 6, 6, NONE, "") + flops_of("dgetrs", NONE, 6, 3, "N"));
	/* getrf and getri together are 2n^3 in the highest order */
	assert_in_range(flops_of("dgetrf", 300, 300, NONE, "") +
				flops_of("dgetri", NONE, 300, NONE, ""),
			2 * 300 * 300 * 300 - 2 * 300 * 300, 2 * 300 * 300 * 300);
	/* 4n^3/3 in the highest order */
	assert_in_range(flops_of("dgeqrf", 300, 300, NONE, ""), 36000000, 36000000 + 4 * 300 * 300);
	assert_in_range(flops_of("dorgqr", 300, 300, 300, ""), 36000000 - 300 * 300,
			36000000 + 4 * 300 * 300);
	assert_int_equal(flops_of("zpotrf", NONE, 6, NONE, "U"), 6 * 56 + 2 * 35);
}

static void what_is_not_known_has_a_reason(void **state)
{
	struct recorded_library_call call = {.routine = "dgesdd", .type = 'd', .m = 4, .n = 5};
	uint64_t flops;

	(void)state;
	assert_non_null(torsh_library_flops(&call, &flops));
	call = (struct recorded_library_call){.routine = "dgemm", .type = 'd', .m = 4, .n = 5};
	assert_non_null(torsh_library_flops(&call, &flops));
	call.k = 1;
	assert_null(torsh_library_flops(&call, &flops));
	assert_int_equal(flops, 0);
	call.is_rest = true;
	assert_non_null(torsh_library_flops(&call, &flops));
	call = (struct recorded_library_call){.routine = NULL};
	assert_non_null(torsh_library_flops(&call, &flops));
	assert_string_equal(torsh_library_type('z'), "complex128");
	assert_null(torsh_library_type('x'));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(products_are_two_operations_for_each_term),
		cmocka_unit_test(triangles_are_counted_as_by_substitution),
		cmocka_unit_test(factorisations_are_counted_as_by_elimination),
		cmocka_unit_test(what_is_not_known_has_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
