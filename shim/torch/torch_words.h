/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Reads memory that may be unmapped, through the kernel: for the guesses of the calibration. */
#ifndef TORSH_SHIM_TORCH_TORCH_WORDS_H
#define TORSH_SHIM_TORCH_TORCH_WORDS_H

#include <stdbool.h>
#include <sys/uio.h>

#include "shim/sys.h"
#include "shim/torch/torch.h"

#define TORCH_READ_STEP 8u /* words */

/* Read up to n words at address; returns how many were readable, in steps. */
static inline uint32_t torch_read_words(uintptr_t address, uint64_t *words, uint32_t n)
{
	for (; n; n -= n < TORCH_READ_STEP ? n : TORCH_READ_STEP) {
		struct iovec to = {.iov_base = words, .iov_len = n * sizeof(*words)};
		struct iovec from = {.iov_base = (void *)address, .iov_len = to.iov_len};

		if (TORSH_SYS(SYS_process_vm_readv, torsh_sys_getpid(), &to, 1, &from, 1, 0) ==
		    (long)to.iov_len)
			return n;
	}
	return 0;
}

static inline bool torch_is_pointer(uint64_t word)
{
	return word >= 4096 && word % sizeof(void *) == 0;
}

static inline bool torch_read_values(uintptr_t at, uint32_t n, struct torch_ivalue *values)
{
	return torch_is_pointer(at) && torch_read_words(at, (uint64_t *)values, 2 * n) == 2 * n;
}

#endif
