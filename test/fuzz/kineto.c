/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A trace of PyTorch's profiler, which anybody may have written: read in pieces whose size its
 * first byte tells, broken down, and folded.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/ranks/kineto/breakdown.h"
#include "tools/ranks/kineto/kineto_fold.h"
#include "tools/ranks/make/rank_row.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

struct piece_input {
	const uint8_t *bytes;
	size_t n, piece;
};

static size_t fill(void *source, char *bytes, size_t n)
{
	struct piece_input *input = source;

	if (n > input->piece)
		n = input->piece;
	if (n > input->n)
		n = input->n;
	memcpy(bytes, input->bytes, n);
	input->bytes += n;
	input->n -= n;
	return n;
}

static void break_down(const struct kineto_trace *trace, bool without_last_step)
{
	struct breakdown breakdown;

	torsh_breakdown_make(&breakdown, trace, without_last_step);
	if (breakdown.n_kernels > trace->n_kernels || breakdown.n_names > trace->n_names ||
	    breakdown.n_streams > breakdown.n_kernels)
		abort();
	torsh_breakdown_free(&breakdown);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	struct piece_input input = {bytes + 1, n_bytes - 1, n_bytes ? bytes[0] + 1u : 1};
	struct kineto_trace trace;
	char error[256] = "";

	if (!n_bytes)
		return 0;
	if (torsh_kineto_read_from(&trace, "trace", fill, &input, error, sizeof(error))) {
		struct fold *fold = torsh_fold_create();

		break_down(&trace, false);
		if (trace.has_step)
			break_down(&trace, true);
		torsh_rank_row_free(torsh_kineto_fold(fold, &trace));
		torsh_fold_settle(fold);
		torsh_fold_destroy(fold);
	} else if (!*error) {
		abort();
	}
	torsh_kineto_free(&trace);
	return 0;
}
