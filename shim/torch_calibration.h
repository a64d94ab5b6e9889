/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Finds the layouts of shim/torch.h in the running process: operators are run with arguments that are known, and what
 * torch hands to the callback is searched for them. A place counts when it is the only one that fits, in each of
 * several calls. Memory is read through the kernel, so that a wrong guess can't fault.
 *
 * A thread begins; then, for each step of torch_calibration.def, it says which one comes, runs its operator once, and
 * asks whether it fitted; then it finishes. It is the only one, and the only time.
 */
#ifndef TORSH_SHIM_TORCH_CALIBRATION_H
#define TORSH_SHIM_TORCH_CALIBRATION_H

#include <stdbool.h>

/* 0, or -EALREADY. */
int torsh_torch_calibration_begin(void);

/* The step of this name comes next; false: there is none. */
bool torsh_torch_calibration_expect(const char *step);

/* Did its operator come, and fit? */
bool torsh_torch_calibration_fitted(void);

/* Nothing comes any more. Returns whether shapes can be read: then torsh_torch_is_calibrated. */
bool torsh_torch_calibration_finish(void);

/* Is this the thread that calibrates? What it runs meanwhile is not the program's. */
extern _Thread_local bool torsh_torch_is_calibrating;

/* An operator of the calibrating thread begins. */
void torsh_torch_calibration_look(const void *record, const char *name);

#endif
