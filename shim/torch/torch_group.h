/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Finds the layout of process groups: a part of shim/torch/torch_search.c, its only caller. */
#ifndef TORSH_SHIM_TORCH_TORCH_GROUP_H
#define TORSH_SHIM_TORCH_TORCH_GROUP_H

#include <stdbool.h>

/*
 * c10d::allreduce_(tensors, group, ...) begins with the group of
 * torsh_torch_calibration_take_group. Returns whether one offset matches, the same one the second
 * time.
 */
bool torsh_torch_group_look(const void *record, bool is_second);

/* Publish the layout that was found. */
void torsh_torch_group_publish(void);

#endif
