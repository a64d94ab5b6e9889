/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Finds the layouts of shim/torch/torch.h in the running process: operators are run with arguments
 * that are known, and what torch hands to the callback is searched for them. A place counts when it
 * is the only one that fits, in each of several calls. Memory is read through the kernel, so that a
 * wrong guess can't fault.
 *
 * A thread begins; then, for each step of torch_calibration.def, it says which one comes, runs its
 * operator once, and asks whether it fitted; then it finishes. It is the only one, and the only
 * time.
 */
#ifndef TORSH_SHIM_TORCH_TORCH_CALIBRATION_H
#define TORSH_SHIM_TORCH_TORCH_CALIBRATION_H

#include <stdbool.h>
#include <stdint.h>

/* 0, or -EALREADY. */
int torsh_torch_calibration_begin(void);

/* The step of this name comes next; false: there is none. */
bool torsh_torch_calibration_expect(const char *step);

/* Did its operator come, and fit? */
bool torsh_torch_calibration_fitted(void);

/* Nothing comes any more. Returns whether shapes can be read: then torsh_torch_is_calibrated. */
bool torsh_torch_calibration_finish(void);

/*
 * The same once more for process groups, when the first one comes, where shapes are known: object
 * is the Python object of the one that the next step's operator gets. Returns 0, or -EALREADY or
 * -ENOENT.
 */
int torsh_torch_calibration_begin_groups(void);
void torsh_torch_calibration_take_group(const void *object);

/* Returns whether they can be told apart: then torsh_torch_has_groups. */
bool torsh_torch_calibration_finish_groups(void);

/* The c10d::ProcessGroup of a Python object; 0 where that is not known. */
uintptr_t torsh_torch_group_of(const void *object);

/* Is this the thread that calibrates? What it runs meanwhile is not the program's. */
extern _Thread_local bool torsh_torch_is_calibrating;

/* An operator of the calibrating thread begins. */
void torsh_torch_calibration_look(const void *record, const char *name);

#endif
