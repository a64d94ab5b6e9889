/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Products of cublasLt and the functions of cuDNN with a descriptor for each tensor: cublasLt.h,
 * cudnn_ops.h and cudnn_cnn.h. A graph of cuDNN's backend keeps what it is made of to itself.
 */
#include <string.h>

#include "collectors/blas/libraries/library_call.h"

/* ---- cublasLt -------------------------------------------------------------------------------- */

typedef int get_attribute(const void *of, int attribute, void *value, size_t n_bytes,
			  size_t *n_written);

enum { LAYOUT_TYPE = 0, LAYOUT_ROWS = 2, LAYOUT_COLUMNS = 3, LAYOUT_BATCH = 5 };
enum { PRODUCT_TRANSPOSES_A = 3, PRODUCT_TRANSPOSES_B = 4, PRODUCT_EPILOGUE = 7 };
enum { ALGORITHM_ID = 0, ALGORITHM_TILE = 1, ALGORITHM_SPLIT_K = 2 };

/* The argument's attribute; -1: it isn't known. */
static int64_t attribute_of(const struct blas_frame *frame, get_attribute *get, uint32_t argument,
			    int attribute, size_t n_bytes)
{
	const void *of = (const void *)library_argument(frame, argument);
	uint64_t value = 0;
	size_t n_written = 0;

	if (!of || !get || get(of, attribute, &value, n_bytes, &n_written))
		return -1;
	return n_bytes == 4 ? (int64_t)(int32_t)value : (int64_t)value;
}

static void put_number(struct library_call *call, const char *name, int64_t number)
{
	if (number < 0)
		return;
	if (call->details.length)
		torsh_text_put(&call->details, ", ");
	torsh_text_put(&call->details, name);
	torsh_text_put_number(&call->details, (uint64_t)number);
}

/* cublasLtEpilogue_t. */
static void put_epilogue(struct library_call *call, int64_t epilogue)
{
	static const struct {
		uint32_t bit;
		const char *text;
	} parts[] = {{2, "relu"},   {32, "gelu"},    {8, "drelu"},    {64, "dgelu"}, {4, "bias"},
		     {16, "bgrad"}, {256, "bgrada"}, {512, "bgradb"}, {128, "aux"}};
	const char *separator = call->details.length ? ", epilogue " : "epilogue ";

	for (size_t i = 0; epilogue > 1 && i < sizeof(parts) / sizeof(*parts); i++)
		if ((uint64_t)epilogue & parts[i].bit) {
			torsh_text_put(&call->details, separator);
			torsh_text_put(&call->details, parts[i].text);
			separator = "+";
		}
}

void torsh_library_read_cublaslt(struct library_call *call, const struct blas_frame *frame)
{
	struct blas_slot *slot = frame->slot;
	get_attribute *layout =
		(get_attribute *)torsh_library_query(slot, 0, "cublasLtMatrixLayoutGetAttribute");
	get_attribute *product =
		(get_attribute *)torsh_library_query(slot, 1, "cublasLtMatmulDescGetAttribute");
	get_attribute *algorithm = (get_attribute *)torsh_library_query(
		slot, 2, "cublasLtMatmulAlgoConfigGetAttribute");
	int64_t is_transposed = attribute_of(frame, product, 1, PRODUCT_TRANSPOSES_A, 4);
	int64_t of_b = attribute_of(frame, product, 1, PRODUCT_TRANSPOSES_B, 4);

	/* Arguments 4, 6, 9 and 11 are the layouts of A, B, C and D. */
	call->m = (uint64_t)attribute_of(frame, layout, 11, LAYOUT_ROWS, 8) + 1;
	call->n = (uint64_t)attribute_of(frame, layout, 11, LAYOUT_COLUMNS, 8) + 1;
	call->batch = (uint64_t)attribute_of(frame, layout, 11, LAYOUT_BATCH, 4) + 1;
	if (is_transposed >= 0)
		call->k = (uint64_t)attribute_of(frame, layout, 4,
						 is_transposed ? LAYOUT_ROWS : LAYOUT_COLUMNS, 8) +
			  1;
	call->type =
		torsh_library_cuda_type((uint64_t)attribute_of(frame, layout, 4, LAYOUT_TYPE, 4));
	if (is_transposed >= 0 && is_transposed < 3 && of_b >= 0 && of_b < 3)
		call->letters = (uint32_t)("NTC"[is_transposed] | "NTC"[of_b] << 8);
	put_number(call, "algorithm ", attribute_of(frame, algorithm, 12, ALGORITHM_ID, 4));
	put_number(call, "tile ", attribute_of(frame, algorithm, 12, ALGORITHM_TILE, 4));
	put_number(call, "split-k ", attribute_of(frame, algorithm, 12, ALGORITHM_SPLIT_K, 4));
	put_epilogue(call, attribute_of(frame, product, 1, PRODUCT_EPILOGUE, 4));
}

/* ---- cuDNN ----------------------------------------------------------------------------------- */

#define RANK 8 /* CUDNN_DIM_MAX */

typedef int get_tensor(const void *tensor, int n_wanted, int *type, int *n, int *sizes,
		       int *strides);
typedef int get_filter(const void *filter, int n_wanted, int *type, int *format, int *n,
		       int *sizes);

/* cudnnDataType_t: float, double, half, int8, int32, and so on. */
static uint32_t letter_of(int type)
{
	static const char letters[] = "sdhij u  b  ef";

	return type >= 0 && type < (int)sizeof(letters) - 1 && letters[type] != ' '
		       ? (uint8_t)letters[type]
		       : 0;
}

static void put_sizes(struct library_call *call, int n, const int *sizes, int type)
{
	for (int i = 0; i < n && i < RANK; i++)
		torsh_library_put_size(call, (uint64_t)sizes[i], i ? 'x' : ':');
	if (!call->type)
		call->type = letter_of(type);
}

static void put_tensor(struct library_call *call, const struct blas_frame *frame, uint32_t argument)
{
	get_tensor *get =
		(get_tensor *)torsh_library_query(frame->slot, 0, "cudnnGetTensorNdDescriptor");
	int type, n, sizes[RANK], strides[RANK];

	if (get &&
	    !get((const void *)library_argument(frame, argument), RANK, &type, &n, sizes, strides))
		put_sizes(call, n, sizes, type);
}

static void put_filter(struct library_call *call, const struct blas_frame *frame, uint32_t argument)
{
	get_filter *get =
		(get_filter *)torsh_library_query(frame->slot, 1, "cudnnGetFilterNdDescriptor");
	int type, n, format, sizes[RANK];

	if (get &&
	    !get((const void *)library_argument(frame, argument), RANK, &type, &format, &n, sizes))
		put_sizes(call, n, sizes, type);
}

void torsh_library_read_cudnn(struct library_call *call, const struct blas_frame *frame)
{
	const struct blas_layout *at = &frame->slot->name.routine->at;

	if (!at->m)
		return;
	put_tensor(call, frame, at->m);
	if (at->k)
		put_filter(call, frame, at->k);
	put_tensor(call, frame, at->n);
	if (at->work)
		put_number(call, "algorithm ",
			   (int64_t)(uint32_t)library_argument(frame, at->work));
}
