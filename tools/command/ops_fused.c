/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/ops_fused.h"

#include <stdio.h>

#include "tools/base/size.h"

void torsh_ops_fused_collect(struct ops_fused *fused, const struct reading *reading,
			     const struct prepass *prepass)
{
	bool has_devices = false;

	*fused = (struct ops_fused){.reading = reading};
	for (size_t i = 0; i < prepass->n; i++)
		has_devices = has_devices || prepass->items[i].work.is_seen;
	if (has_devices)
		torsh_kernels_collect(&fused->kernels, reading->recording, reading->processes,
				      reading->n_processes, prepass);
	fused->flops = torsh_fused_kernels_create(reading->recording, prepass);
}

void torsh_ops_fused_free(struct ops_fused *fused)
{
	torsh_fused_kernels_destroy(fused->flops);
	torsh_kernels_free(&fused->kernels);
}

/* Returns whether Inductor generated the row's kernel, and gets the FLOPs of all its calls. */
static bool find_row(struct ops_fused *fused, const struct kernel_row *row,
		     struct fused_flops *flops)
{
	if (row->what != DEVICE_KERNEL || !torsh_is_fused_kernel(row->name))
		return false;
	*flops = torsh_fused_kernels_find(fused->flops, fused->reading->processes,
					  fused->reading->n_processes, row->name);
	if (!flops->reason && __builtin_mul_overflow(flops->n, row->calls, &flops->n))
		flops->reason = "the number is too large";
	return true;
}

void torsh_ops_fused_emit(struct json_writer *json, struct ops_fused *fused)
{
	torsh_json_begin_lines(json, "fused_kernels");
	for (size_t i = 0; i < fused->kernels.n; i++) {
		const struct kernel_row *row = &fused->kernels.rows[i];
		struct fused_flops flops;

		if (!find_row(fused, row, &flops))
			continue;
		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "name", row->name);
		torsh_json_put_text(json, "op", row->reason ? NULL : row->operator_name);
		torsh_json_put_u64(json, "calls", row->calls);
		torsh_json_put_known(json, "flops", !flops.reason, flops.n);
		torsh_json_put_text(json, "reason", flops.reason);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

void torsh_ops_fused_print(struct ops_fused *fused)
{
	uint64_t n = 0, calls = 0, unknown_calls = 0;
	char total[SIZE_TEXT_BYTES], known[SIZE_TEXT_BYTES], unknown[SIZE_TEXT_BYTES];

	for (size_t i = 0; i < fused->kernels.n; i++) {
		const struct kernel_row *row = &fused->kernels.rows[i];
		struct fused_flops flops;

		if (!find_row(fused, row, &flops))
			continue;
		if (flops.reason) {
			unknown_calls += row->calls;
			continue;
		}
		n = __builtin_add_overflow(n, flops.n, &n) ? UINT64_MAX : n;
		calls += row->calls;
	}
	if (calls)
		printf("Triton kernels of torch.compile: %s FLOPs as FlopCounterMode counts in %s launches, "
		       "not in the FLOPs of operators\n",
		       torsh_size_si(n, total), torsh_size_grouped(calls, known));
	if (unknown_calls)
		printf("%s launches of other Triton kernels have unknown FLOPs; --json has the "
		       "reasons\n",
		       torsh_size_grouped(unknown_calls, unknown));
}
