/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/blas/libraries/library_call.h"

void torsh_library_read(struct library_call *call, const struct blas_frame *frame)
{
	const struct blas_name *name = &frame->slot->name;

	call->routine = name->routine->name;
	switch (name->form) {
	case LIBRARY_FFTW_PLAN:
	case LIBRARY_FFTW:
	case LIBRARY_CUFFT_PLAN:
	case LIBRARY_CUFFT:
		torsh_library_read_fft(call, frame);
		return;
	default:
		break;
	}
	if ((uint32_t)frame->results[0]) {
		torsh_text_put(&call->details, "failed with status ");
		torsh_text_put_number(&call->details, (uint32_t)frame->results[0]);
		return;
	}
	if (name->form == LIBRARY_DNNL)
		torsh_library_read_dnnl(call, frame);
	else if (name->form == LIBRARY_CUBLASLT)
		torsh_library_read_cublaslt(call, frame);
	else
		torsh_library_read_cudnn(call, frame);
}
