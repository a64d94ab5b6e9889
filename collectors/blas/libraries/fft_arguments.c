/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Fourier transforms: a plan has the sizes, the call only the plan. fftw3.h, cufft.h and cufftXt.h.
 */
#include <string.h>

#include "collectors/blas/libraries/fft_plans.h"
#include "collectors/blas/libraries/library_call.h"

#define NO_ADDRESS 4096u /* below it nothing is mapped */

static int64_t number_at(uint64_t address, uint64_t i, bool is_wide)
{
	int64_t wide;
	int32_t narrow;

	if (address < NO_ADDRESS)
		return -1;
	if (is_wide) {
		memcpy(&wide, (const int64_t *)address + i, sizeof(wide));
		return wide;
	}
	memcpy(&narrow, (const int32_t *)address + i, sizeof(narrow));
	return narrow;
}

/* A size that isn't valid leaves the plan without sizes. */
static void add_size(struct fft_plan *plan, int64_t size)
{
	if (size < 1)
		plan->rank = FFT_RANK + 1;
	else if (plan->rank < FFT_RANK)
		plan->sizes[plan->rank++] = (uint64_t)size;
	else
		plan->rank = FFT_RANK + 1;
}

/* An array of rank numbers, or of structs of three of them. */
static void add_sizes(struct fft_plan *plan, uint64_t rank, uint64_t address, uint32_t step,
		      bool is_wide)
{
	for (uint64_t i = 0; i < (uint32_t)rank && plan->rank <= FFT_RANK; i++)
		add_size(plan, number_at(address, i * step, is_wide));
}

static uint64_t guru_batch(uint64_t rank, uint64_t address, bool is_wide)
{
	uint64_t batch = 1;

	for (uint64_t i = 0; i < (uint32_t)rank; i++) {
		int64_t size = number_at(address, i * 3, is_wide);

		batch *= size < 0 ? 0 : (uint64_t)size;
	}
	return batch;
}

/* Read the sizes from argument i on. Returns the number of the first argument after them. */
static uint32_t read_sizes(struct fft_plan *plan, const struct blas_frame *frame, uint32_t i)
{
	const struct blas_name *name = &frame->slot->name;
	bool is_wide = name->geometry == FFT_GURU_64 || name->is_wide;

	switch (name->geometry) {
	case FFT_1D:
	case FFT_2D:
	case FFT_3D:
		for (uint32_t d = 0; d < (uint32_t)name->geometry; d++)
			add_size(plan, (int32_t)library_argument(frame, i + d));
		return i + (uint32_t)name->geometry;
	case FFT_GURU:
	case FFT_GURU_64:
		add_sizes(plan, library_argument(frame, i), library_argument(frame, i + 1), 3,
			  is_wide);
		plan->batch = guru_batch(library_argument(frame, i + 2),
					 library_argument(frame, i + 3), is_wide);
		return i + 4;
	default:
		add_sizes(plan, library_argument(frame, i), library_argument(frame, i + 1), 1,
			  is_wide);
		return i + 2;
	}
}

/* ---- FFTW ------------------------------------------------------------------------------------ */

static uint8_t fftw_type(char precision, uint8_t kind)
{
	bool is_complex = kind == FFT_C2C;

	return (uint8_t)(precision == 'f'   ? "sc"[is_complex]
			 : precision == 'l' ? "lk"[is_complex]
					    : "dz"[is_complex]);
}

/*
 * After the sizes: how many, what is read and what is written, each with three arguments more of
 * its layout if there are many; then the sign or the kinds, then the flags.
 */
static void read_fftw_plan(struct fft_plan *plan, const struct blas_frame *frame)
{
	const struct blas_name *name = &frame->slot->name;
	uint32_t at = read_sizes(plan, frame, 0), n_data = 2;
	bool is_listed = name->geometry >= FFT_1D && name->geometry <= FFT_3D;

	if (name->geometry == FFT_MANY) {
		plan->batch = (uint32_t)library_argument(frame, at++);
		n_data = 8;
	}
	if (name->is_split)
		n_data = name->kind == FFT_C2C ? 4 : 3;
	plan->type = fftw_type(name->type, plan->kind);
	plan->is_in_place =
		library_argument(frame, at) == library_argument(frame, at + (n_data == 8   ? 4
									     : n_data == 2 ? 1
											   : 2));
	at += n_data;
	if (name->kind == FFT_C2C && !name->is_split)
		plan->sign = (int32_t)library_argument(frame, at++);
	else if (name->kind == FFT_R2R)
		at += is_listed ? (uint32_t)name->geometry : 1;
	plan->flags = (uint32_t)library_argument(frame, at);
}

/* ---- cuFFT ----------------------------------------------------------------------------------- */

/* cufftType: the low bits are the types from and to, bit 6 double precision. */
static void set_cufft_type(struct fft_plan *plan, uint32_t type)
{
	bool is_double = type & 0x40;

	plan->kind = (type & 0xf) == 0x9 ? FFT_C2C : (type & 0xf) < 0xc ? FFT_R2C : FFT_C2R;
	plan->type = (uint8_t)(plan->kind == FFT_C2C ? "cz"[is_double] : "sd"[is_double]);
}

/* Of cufftXt: the types of what is read and what is written. */
static void set_xt_type(struct fft_plan *plan, uint64_t input, uint64_t output)
{
	static const uint32_t complexes = 1u << 4 | 1u << 5 | 1u << 6 | 1u << 15;
	bool from = input < 32 && complexes >> input & 1,
	     to = output < 32 && complexes >> output & 1;

	plan->kind = from && to ? FFT_C2C : to ? FFT_R2C : FFT_C2R;
	plan->type = (uint8_t)torsh_library_cuda_type(plan->kind == FFT_R2C ? input : output);
	/* CUDA_C_16F and CUDA_C_16BF */
	if (plan->kind == FFT_C2C && (input == 6 || input == 15))
		plan->type = 0;
}

static void read_cufft_plan(struct fft_plan *plan, const struct blas_frame *frame)
{
	const struct blas_name *name = &frame->slot->name;
	uint32_t at = read_sizes(plan, frame, 1);

	switch (name->geometry) {
	case FFT_MANY:
		set_cufft_type(plan, (uint32_t)library_argument(frame, 9));
		plan->batch = name->is_wide ? library_argument(frame, 10)
					    : (uint32_t)library_argument(frame, 10);
		break;
	case FFT_XT:
		set_xt_type(plan, (uint32_t)library_argument(frame, 6),
			    (uint32_t)library_argument(frame, 10));
		plan->batch = library_argument(frame, 11);
		break;
	default:
		set_cufft_type(plan, (uint32_t)library_argument(frame, at));
		if (name->geometry == FFT_1D)
			plan->batch = (uint32_t)library_argument(frame, at + 1);
	}
}

/* ---- both ------------------------------------------------------------------------------------ */

/* cuFFT numbers its plans; FFTW's are addresses, which are even. 0: the plan wasn't made. */
static uint64_t made_plan(const struct blas_frame *frame)
{
	const struct blas_name *name = &frame->slot->name;
	uint64_t first = library_argument(frame, 0);
	uint32_t number;

	if (name->form == LIBRARY_FFTW_PLAN)
		return frame->results[0];
	if ((uint32_t)frame->results[0])
		return 0;
	number = (uint32_t)first;
	if (!name->is_made)
		memcpy(&number, (const void *)first, sizeof(number));
	return (uint64_t)number << 1 | 1;
}

static uint64_t used_plan(const struct blas_frame *frame)
{
	enum blas_form form = frame->slot->name.form;
	uint64_t first = library_argument(frame, 0);

	return form == LIBRARY_CUFFT || form == LIBRARY_CUFFT_FORGETS
		       ? (uint64_t)(uint32_t)first << 1 | 1
		       : first;
}

void torsh_library_forget_plan(const struct blas_frame *frame)
{
	torsh_fft_plan_forget(used_plan(frame));
}

static void describe(struct library_call *call, const struct fft_plan *plan)
{
	static const struct {
		uint32_t bits;
		const char *text;
	} flags[] = {{1u << 6, "estimate"}, {1u << 5, "patient"}, {1u << 3, "exhaustive"}};
	const char *effort = "measure";
	uint64_t points = 1;

	call->type = plan->type;
	call->batch = plan->batch + 1;
	if (plan->rank <= FFT_RANK) {
		for (uint32_t i = 0; i < plan->rank; i++) {
			torsh_library_put_size(call, plan->sizes[i], 'x');
			if (__builtin_mul_overflow(points, plan->sizes[i], &points))
				return;
		}
		call->n = points + 1;
	}
	if (plan->sign)
		torsh_text_put(&call->details, plan->sign < 0 ? "forward, " : "backward, ");
	torsh_text_put(&call->details, plan->is_in_place ? "in place" : "out of place");
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
		if (plan->flags & flags[i].bits)
			effort = flags[i].text;
	torsh_text_put(&call->details, ", ");
	torsh_text_put(&call->details, effort);
}

static const char *const routines[] = {
	[FFT_C2C] = "fft_c2c", [FFT_R2C] = "fft_r2c", [FFT_C2R] = "fft_c2r", [FFT_R2R] = "fft_r2r"};

/* What only the call has: where it reads and writes, and in which direction. */
static void describe_cufft(struct library_call *call, const struct blas_frame *frame,
			   const struct fft_plan *plan)
{
	bool is_plan = frame->slot->name.form == LIBRARY_CUFFT_PLAN;

	call->details.length = 0;
	*call->details.bytes = 0;
	if (is_plan)
		return;
	if (plan->kind == FFT_C2C)
		torsh_text_put(&call->details, (int32_t)library_argument(frame, 3) < 0
						       ? "forward, "
						       : "backward, ");
	torsh_text_put(&call->details, library_argument(frame, 1) == library_argument(frame, 2)
					       ? "in place"
					       : "out of place");
}

void torsh_library_read_fft(struct library_call *call, const struct blas_frame *frame)
{
	const struct blas_name *name = &frame->slot->name;
	bool is_cufft = name->form == LIBRARY_CUFFT || name->form == LIBRARY_CUFFT_PLAN;
	struct fft_plan plan = {.batch = 1, .kind = (uint8_t)name->kind};

	if (name->routine->name[3]) { /* a planner */
		uint64_t handle = made_plan(frame);

		if (!handle)
			return;
		if (is_cufft)
			read_cufft_plan(&plan, frame);
		else
			read_fftw_plan(&plan, frame);
		torsh_fft_plan_keep(handle, &plan);
	} else if (torsh_fft_plan_find(used_plan(frame), &plan)) {
		call->routine = routines[plan.kind & 3];
	} else {
		return;
	}
	describe(call, &plan);
	if (is_cufft)
		describe_cufft(call, frame, &plan);
}
