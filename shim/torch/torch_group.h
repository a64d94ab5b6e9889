/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Where process groups lie: the part of shim/torch/torch_calibration.c that looks for them, and its
 * only caller.
 */
#ifndef TORSH_SHIM_TORCH_TORCH_GROUP_H
#define TORSH_SHIM_TORCH_TORCH_GROUP_H

#include <stdbool.h>

/*
 * c10d::allreduce_(tensors, group, ...) begins with the group of
 * torsh_torch_calibration_take_group. Returns whether one place fits, the second time the same
 * again.
 */
bool torsh_torch_group_look(const void *record, bool is_second);

/* What was found is so. */
void torsh_torch_group_publish(void);

#endif
