/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Functions of libraries other than BLAS and LAPACK. Arguments are counted from 0, as they are
 * passed.
 */
#include <string.h>

#include "shim/blas/blas.h"

/* ---- Fourier transforms ---------------------------------------------------------------------- */

/* As many arguments as any of them has. */
static const struct blas_routine planner = {.name = "fft_plan", .n_arguments = 14};
static const struct blas_routine transform = {.name = "fft", .n_arguments = 6};

static bool take(const char **text, const char *prefix)
{
	const char *rest = torsh_text_after(*text, prefix);

	*text = rest ? rest : *text;
	return rest;
}

/* "1d", "2d" or "3d", and no more. */
static enum fft_geometry geometry_of(const char *text)
{
	return text[0] >= '1' && text[0] <= '3' && !strcmp(text + 1, "d")
		       ? (enum fft_geometry)(text[0] - '0')
		       : FFT_BY_ARRAY;
}

/* "many_dft_r2c" and so on. */
static bool read_fftw_plan(const char *text, struct blas_name *name)
{
	bool is_guru;

	name->form = LIBRARY_FFTW_PLAN;
	name->routine = &planner;
	name->geometry = take(&text, "many_")	  ? FFT_MANY
			 : take(&text, "guru64_") ? FFT_GURU_64
			 : take(&text, "guru_")	  ? FFT_GURU
						  : FFT_BY_ARRAY;
	is_guru = name->geometry == FFT_GURU || name->geometry == FFT_GURU_64;
	name->is_split = is_guru && take(&text, "split_");
	if (take(&text, "r2r"))
		name->kind = FFT_R2R;
	else if (!take(&text, "dft"))
		return false;
	else
		name->kind = take(&text, "_r2c")   ? FFT_R2C
			     : take(&text, "_c2r") ? FFT_C2R
						   : FFT_C2C;
	if (!*text)
		return true;
	if (name->geometry != FFT_BY_ARRAY || !take(&text, "_"))
		return false;
	name->geometry = geometry_of(text);
	return name->geometry != FFT_BY_ARRAY;
}

/* In single, double and long precision; what of FFTW is written in Fortran calls these. */
static bool read_fftw(const char *text, struct blas_name *name)
{
	name->type = *text == 'f' || *text == 'l' ? *text++ : 'd';
	if (!take(&text, "_"))
		return false;
	if (take(&text, "plan_"))
		return read_fftw_plan(text, name);
	name->routine = &transform;
	name->form = LIBRARY_FFTW;
	if (take(&text, "execute"))
		return !*text || *text == '_';
	name->form = LIBRARY_FFTW_FORGETS;
	return !strcmp(text, "destroy_plan");
}

static bool read_cufft(const char *text, struct blas_name *name)
{
	bool is_xt = take(&text, "Xt");

	name->routine = &transform;
	name->form = LIBRARY_CUFFT;
	if (is_xt ? !strcmp(text, "Exec") : take(&text, "Exec"))
		return true;
	name->form = LIBRARY_CUFFT_FORGETS;
	if (!is_xt && !strcmp(text, "Destroy"))
		return true;
	name->form = LIBRARY_CUFFT_PLAN;
	name->routine = &planner;
	name->is_made = take(&text, "Make");
	if (!take(&text, "Plan"))
		return false;
	if (!take(&text, "Many")) {
		name->geometry = geometry_of(text);
		return !is_xt && name->geometry != FFT_BY_ARRAY;
	}
	name->geometry = is_xt ? FFT_XT : FFT_MANY;
	name->is_wide = is_xt || (name->is_made && !strcmp(text, "64"));
	return !*text || (name->is_wide && !is_xt);
}

/* ---- the others ------------------------------------------------------------------------------ */

/*
 * With the positions of the descriptors of what is read, the weights and what is written, and of
 * the algorithm: cudnn_cnn.h, cudnn_ops.h and cublasLt.h.
 */
#define TENSORS(x, w, y) .at = {.m = (x), .k = (w), .n = (y)}
#define CONVOLUTION(x, w, y) .at = {.m = (x), .k = (w), .n = (y), .work = 7}

static const struct {
	const char *name;
	enum blas_form form;
	struct blas_routine routine;
} functions[] = {
	{"dnnl_primitive_execute", LIBRARY_DNNL, {.name = "primitive", .n_arguments = 4}},
	{"cublasLtMatmul", LIBRARY_CUBLASLT, {.name = "matmul", .n_arguments = 16}},
#define CUDNN(function, does, ...) \
	{"cudnn" function, LIBRARY_CUDNN, {.name = does, .n_arguments = 28, __VA_ARGS__}},
	CUDNN("ConvolutionForward", "convolution", CONVOLUTION(2, 4, 11)) CUDNN(
		"ConvolutionBackwardData", "convolution", CONVOLUTION(11, 2, 4))
		CUDNN("ConvolutionBackwardFilter", "convolution", CONVOLUTION(2, 11, 4)) CUDNN(
			"ConvolutionBiasActivationForward", "convolution",
			CONVOLUTION(2, 4, 16)) CUDNN("PoolingForward", "pooling",
						     TENSORS(3, 0, 6)) CUDNN("PoolingBackward",
									     "pooling",
									     TENSORS(7, 0, 3))
			CUDNN("ActivationForward", "eltwise", TENSORS(3, 0, 6)) CUDNN(
				"ActivationBackward", "eltwise",
				TENSORS(7, 0,
					3)) CUDNN("SoftmaxForward", "softmax", TENSORS(4, 0, 7))
				CUDNN("SoftmaxBackward", "softmax", TENSORS(9, 0, 4)) CUDNN(
					"BatchNormalizationForwardTraining", "batch_normalization",
					TENSORS(4, 0,
						6)) CUDNN("BatchNormalizationForwardInference",
							  "batch_normalization", TENSORS(4, 0, 6))
					CUDNN(
						"BatchNormalizationBackward", "batch_normalization",
						TENSORS(6, 0,
							8)) CUDNN("BatchNormalizationForwardTrainingEx",
								  "batch_normalization",
								  TENSORS(5, 0, 9))
						CUDNN("BatchNormalizationBackwardEx",
						      "batch_normalization",
						      TENSORS(7, 0, 9)) CUDNN("RNNForward", "rnn", )
							CUDNN("RNNBackwardData_v8", "rnn", ) CUDNN(
								"RNNBackwardWeights_v8", "rnn", )
								CUDNN("BackendExecute", "graph", )
#undef CUDNN
};

bool torsh_library_name(const char *text, struct blas_name *name)
{
	const char *rest;
	bool is_known = false;

	if (text[0] != 'f' && text[0] != 'd' && text[0] != 'c')
		return false;
	if ((rest = torsh_text_after(text, "fftw")))
		is_known = read_fftw(rest, name);
	else if ((rest = torsh_text_after(text, "cufft")))
		is_known = read_cufft(rest, name);
	else if (torsh_text_after(text, "dnnl_p") || torsh_text_after(text, "cublasLtM") ||
		 torsh_text_after(text, "cudnn"))
		for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
			if (!strcmp(text, functions[i].name)) {
				name->form = functions[i].form;
				name->routine = &functions[i].routine;
				is_known = true;
			}
	if (!is_known)
		*name = (struct blas_name){.form = BLAS_IN_FORTRAN};
	return is_known;
}
