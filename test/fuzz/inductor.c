/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Two files of Inductor's code, the second one behind a NUL, and the FLOPs of their kernels, as of
 * Triton and of C++: its cache may hold what anybody wrote.
 */
#include "tools/device/kernels/inductor.h"
#include "tools/ops/fused_flops.h"
#include "tools/ops/inductor/cpp_kernel.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

static void check(const struct inductor *inductor)
{
	for (size_t i = 0; i < inductor->n; i++) {
		const struct inductor_kernel *kernel = &inductor->kernels[i];
		const struct inductor_kernel *found = torsh_inductor_find(inductor, kernel->name);

		if (found != (kernel->is_ambiguous ? NULL : kernel) || !*kernel->name ||
		    !kernel->n_operators)
			abort();
		for (size_t j = 0; j < kernel->n_operators; j++) {
			if (!strstr(kernel->operators[j], "::"))
				abort();
		}
		for (size_t j = 0; j < kernel->n_comments; j++)
			torsh_fused_flops_of(kernel->name, kernel->comments[j]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	char *copy = calloc(1, n_bytes + 2);
	struct inductor inductor = {0};

	if (!copy)
		abort();
	if (n_bytes)
		memcpy(copy, bytes, n_bytes);
	torsh_cpp_kernel_count(copy);
	torsh_inductor_parse(&inductor, copy);
	torsh_inductor_parse(&inductor, copy + strlen(copy) + 1);
	torsh_inductor_sort(&inductor);
	check(&inductor);
	torsh_inductor_free(&inductor);
	free(copy);
	return 0;
}
