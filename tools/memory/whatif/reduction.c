/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/whatif/reduction.h"

#include <string.h>

#define SUM_BYTES 4 /* of a part: also that of elements of 2 bytes */
#define COLUMNS_OF_THREAD 4 /* at most, if the number of columns is a multiple */
#define THREADS_MAX 512 /* of a block, for all columns of its threads */
#define WARP 32
#define ROWS_MIN 16 /* of a thread, where a column is divided among blocks */
#define ROWS_MAX 256 /* of a thread, without that */
#define ELEMENTS_MAX (UINT64_C(1) << 32) /* of a dimension, and of their product before it */

struct reduction torsh_reduction_of(const struct batch *batch, const char *operator_name,
				    const struct inputs *inputs)
{
	const struct input *tensor = torsh_inputs_get(inputs, 0),
			   *dims = torsh_inputs_get(inputs, 1);
	struct reduction reduction = {.rows = 1, .columns = 1};
	struct shape shape;
	int with_batch;

	if (strcmp(operator_name, "aten::sum") != 0 || !tensor || tensor->kind != INPUT_TENSOR ||
	    tensor->has_strides || !dims || dims->kind != INPUT_LIST ||
	    dims->n_items >= tensor->n_dims)
		return (struct reduction){0};
	shape = torsh_shape_of(tensor);
	with_batch = torsh_batch_dimension(batch, &shape);
	for (uint32_t i = 0; i < shape.n; i++) {
		bool is_row = i < dims->n_items;

		if (shape.dims[i] <= 0 || (uint64_t)shape.dims[i] >= ELEMENTS_MAX ||
		    reduction.rows * reduction.columns >= ELEMENTS_MAX ||
		    (is_row && (dims[i + 1].kind != INPUT_INTEGER || dims[i + 1].integer != i)))
			return (struct reduction){0};
		*(is_row ? &reduction.rows : &reduction.columns) *= (uint64_t)shape.dims[i];
	}
	reduction.has_batch = with_batch >= 0 && (uint32_t)with_batch < dims->n_items;
	return reduction;
}

static uint64_t power_of_two_below(uint64_t number)
{
	return UINT64_C(1) << (63 - __builtin_clzll(number | 1));
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t divide_up(uint64_t a, uint64_t b)
{
	return (a + b - 1) / b;
}

static uint64_t columns_of_thread(uint64_t columns)
{
	uint64_t n = COLUMNS_OF_THREAD;

	while (columns % n)
		n /= 2;
	return n;
}

uint64_t torsh_reduction_bytes(const struct reduction *reduction, uint64_t n_threads)
{
	uint64_t each = columns_of_thread(reduction->columns), threads = THREADS_MAX / each;
	uint64_t across = power_of_two_below(reduction->columns / each),
		 width = smaller(across, WARP),
		 height = smaller(power_of_two_below(reduction->rows), threads / width);
	uint64_t of_thread, groups, most, blocks;

	width = smaller(across, threads / height);
	of_thread = divide_up(reduction->rows, height);
	if (!reduction->rows || reduction->rows < smaller(height * ROWS_MIN, ROWS_MAX) ||
	    of_thread < ROWS_MAX)
		return 0;
	groups = divide_up(reduction->columns / each, width);
	most = n_threads ? n_threads / (width * height) : UINT64_MAX;
	if (groups > most)
		return 0;
	blocks = smaller(divide_up(of_thread, ROWS_MIN),
			 n_threads ? divide_up(most, groups) : UINT64_MAX);
	if (blocks < divide_up(of_thread, ROWS_MAX))
		blocks = divide_up(of_thread, ROWS_MAX);
	return blocks > 1 ? SUM_BYTES * reduction->columns * blocks * width * each : 0;
}
