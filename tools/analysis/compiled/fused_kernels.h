/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * FLOPs of Triton kernels that Inductor generated, by its code in each process's cache: by the
 * kernel, where that is known, or by a symbol alone.
 */
#ifndef TORSH_ANALYSIS_COMPILED_FUSED_KERNELS_H
#define TORSH_ANALYSIS_COMPILED_FUSED_KERNELS_H

#include "tools/device/kernels/inductor.h"
#include "tools/ops/fused_flops.h"
#include "tools/timeline/prepass/prepass.h"

/* Returns whether Inductor generated the kernel: NULL is no kernel. */
bool torsh_is_fused_kernel(const char *symbol);

/* Returns the FLOPs of one launch. kernel: NULL: its code was not found. */
struct fused_flops torsh_fused_kernel_flops(const struct inductor_kernel *kernel);

/* The caches of all processes of a recording. */
struct fused_kernels;

/* The recording and the pre-pass must outlive it. */
struct fused_kernels *torsh_fused_kernels_create(const struct recording *recording,
						 const struct prepass *prepass);

/* Free it. */
void torsh_fused_kernels_destroy(struct fused_kernels *kernels);

/*
 * Returns the FLOPs of one launch of a generated kernel of that symbol in any of the processes; a
 * reason is set if these disagree. Caches are read at the first call.
 */
struct fused_flops torsh_fused_kernels_find(struct fused_kernels *kernels,
					    struct recorded_process *const *processes,
					    size_t n_processes, const char *symbol);

#endif
