/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which kernels the simulated cuDNN launches for a graph of operations: names as cuDNN's are, and
 * their arithmetic.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "test/simcuda/cudnn/descriptor.h"
#include "test/simcuda/engine/call.h"
#include "test/simcuda/engine/config.h"

static struct sim_api unknown_operation = {.name = "cudnnBackendFinalize of an unknown operation",
					   .unsupported = CUDNN_STATUS_NOT_SUPPORTED};

/* What an operation is to the choice of a kernel. */
enum role {
	ROLE_UNKNOWN,
	ROLE_AUXILIARY, /* fused into the kernel of another */
	ROLE_FORWARD,
	ROLE_BACKWARD_DATA,
	ROLE_BACKWARD_FILTER,
	ROLE_MATMUL,
	ROLE_ATTENTION_FORWARD,
	ROLE_ATTENTION_BACKWARD,
};

/*
 * A convolution by its direction: what its kernels are called, and which of its tensors have which
 * part.
 */
struct convolution {
	const char *name;
	cudnnBackendAttributeName_t input, filter, output;
};

static const struct convolution convolutions[] = {
	[ROLE_FORWARD] = {"fprop", CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
			  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
			  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
	[ROLE_BACKWARD_DATA] = {"dgrad", CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
				CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
				CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
	[ROLE_BACKWARD_FILTER] = {"wgrad", CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
				  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
				  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
};

static enum role role_of(cudnnBackendDescriptorType_t type)
{
	switch (type) {
	case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
		return ROLE_FORWARD;
	case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
		return ROLE_BACKWARD_DATA;
	case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
		return ROLE_BACKWARD_FILTER;
	case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
		return ROLE_MATMUL;
	case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
	case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
	case CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR:
	case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
		return ROLE_AUXILIARY;
#if CUDNN_VERSION >= 92200
	case CUDNN_BACKEND_OPERATION_DIAGONAL_BAND_MASK_DESCRIPTOR:
	case CUDNN_BACKEND_OPERATION_SOFTMAX_DESCRIPTOR:
	case CUDNN_BACKEND_OPERATION_TRANSPOSE_DESCRIPTOR:
		return ROLE_AUXILIARY;
	case CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR:
		return ROLE_ATTENTION_FORWARD;
	case CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR:
		return ROLE_ATTENTION_BACKWARD;
#endif
	default:
		return ROLE_UNKNOWN;
	}
}

/* An attribute of int64_t's, or NULL. */
static const int64_t *numbers_of(const struct descriptor *tensor, cudnnBackendAttributeName_t name,
				 int64_t *n)
{
	const struct attribute *attribute = tensor ? cudnn_descriptor_find(tensor, name) : NULL;

	*n = attribute && attribute->type == CUDNN_TYPE_INT64 ? attribute->n : 0;
	return *n ? attribute->values : NULL;
}

static double elements_of(const struct descriptor *tensor)
{
	int64_t n;
	const int64_t *dimensions = numbers_of(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, &n);
	double product = 1;

	for (int64_t i = 0; i < n; i++)
		product *= (double)dimensions[i];
	return product;
}

/* Two operations for each element of the output and each of the filter's that go into it. */
static double flops_of(const struct descriptor *output, const struct descriptor *filter)
{
	int64_t n;
	const int64_t *dimensions = numbers_of(filter, CUDNN_ATTR_TENSOR_DIMENSIONS, &n);

	return n && dimensions[0]
		       ? 2 * elements_of(output) * elements_of(filter) / (double)dimensions[0]
		       : 0;
}

static cudnnDataType_t type_of(const struct descriptor *tensor)
{
	const struct attribute *type =
		tensor ? cudnn_descriptor_find(tensor, CUDNN_ATTR_TENSOR_DATA_TYPE) : NULL;

	return type && type->n == 1 ? *(const cudnnDataType_t *)type->values : CUDNN_DATA_FLOAT;
}

static bool is_channels_last(const struct descriptor *tensor)
{
	int64_t n;
	const int64_t *strides = numbers_of(tensor, CUDNN_ATTR_TENSOR_STRIDES, &n);

	return n > 1 && strides[1] == 1;
}

__attribute__((format(printf, 3, 4))) static void add(struct kernels *kernels, double flops,
						      const char *format, ...)
{
	va_list arguments;

	if (kernels->n == PLAN_MAX_KERNELS)
		return;
	va_start(arguments, format);
	vsnprintf(kernels->of[kernels->n].name, KERNEL_NAME_BYTES, format, arguments);
	va_end(arguments);
	kernels->of[kernels->n++].flops = flops;
}

/* Types of the input, filter, accumulator and output, as kernels have them in their names. */
static const char *types_of(cudnnDataType_t type)
{
	return type == CUDNN_DATA_HALF	     ? "f16f16_f16f32_f32"
	       : type == CUDNN_DATA_BFLOAT16 ? "bf16bf16_bf16f32_f32"
	       : type == CUDNN_DATA_DOUBLE   ? "f64f64_f64f64_f64"
					     : "f32f32_tf32f32_f32";
}

/*
 * A convolution's kernel; where half precision has channels first, they are turned round before it
 * and after it.
 */
static void add_convolution(struct kernels *kernels, const struct descriptor *operation,
			    enum role role, int64_t engine)
{
	const struct convolution *convolution = &convolutions[role];
	const struct descriptor *input = cudnn_descriptor_inner(operation, convolution->input);
	const struct descriptor *filter = cudnn_descriptor_inner(operation, convolution->filter);
	const struct descriptor *output = cudnn_descriptor_inner(operation, convolution->output);
	cudnnDataType_t type = type_of(input);
	bool is_last = is_channels_last(input);
	bool turns = !is_last && (type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16);

	if (turns)
		add(kernels, 0, "_ZN5cudnn3ops16nchwToNhwcKernelEv");
	add(kernels, flops_of(output, filter),
	    "sm%d_xmma_%s_implicit_gemm_%s_%s_tilesize%s_stage3_warpsize2x2x1_g1_execute_kernel__5x_cudnn",
	    sim_config()->arch, convolution->name, types_of(type),
	    is_last || turns ? "nhwckrsc_nhwc" : "nchwkcrs_nchw",
	    engine ? "64x64x32" : "128x128x32");
	if (turns)
		add(kernels, 0, "_ZN5cudnn3ops16nhwcToNchwKernelEv");
}

static void add_attention(struct kernels *kernels, bool is_backward)
{
	const char *format =
		"cudnn_generated_fort_native_sdpa_sm%d_flash_%s_wgmma_f16_knob_3_64x128x128_kernel0_0";

	add(kernels, 0, format, sim_config()->arch, is_backward ? "bprop" : "fprop");
}

cudnnStatus_t cudnn_kernels_of_graph(const struct descriptor *graph, int64_t engine,
				     struct kernels *kernels)
{
	const struct attribute *operations =
		cudnn_descriptor_find(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
	int n_of[ROLE_ATTENTION_BACKWARD + 1] = {0};
	struct descriptor *const *operation;

	memset(kernels, 0, sizeof(*kernels));
	if (!operations || operations->type != CUDNN_TYPE_BACKEND_DESCRIPTOR)
		return CUDNN_STATUS_BAD_PARAM;
	operation = operations->values;
	for (int64_t i = 0; i < operations->n; i++) {
		enum role role = role_of(operation[i]->type);

		n_of[role]++;
		if (role == ROLE_FORWARD || role == ROLE_BACKWARD_DATA ||
		    role == ROLE_BACKWARD_FILTER)
			add_convolution(kernels, operation[i], role, engine);
	}
	if (n_of[ROLE_UNKNOWN])
		return (cudnnStatus_t)sim_call_unsupported(&unknown_operation);
	/* Attention is two products and what lies between; its derivative has five. */
	if (n_of[ROLE_MATMUL] > 2 || n_of[ROLE_ATTENTION_BACKWARD])
		add_attention(kernels, true);
	else if (n_of[ROLE_MATMUL] == 2 || n_of[ROLE_ATTENTION_FORWARD])
		add_attention(kernels, false);
	else if (n_of[ROLE_MATMUL])
		add(kernels, 0, "cudnn_generated_fort_native_matmul_sm%d_kernel0_0",
		    sim_config()->arch);
	else if (!kernels->n)
		add(kernels, 0, "cudnn_generated_fort_native_pointwise_sm%d_kernel0_0",
		    sim_config()->arch);
	return CUDNN_STATUS_SUCCESS;
}
