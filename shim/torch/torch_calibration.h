/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Finds the layouts of shim/torch/torch.h in the running process: operators run with fixed
 * arguments, and the objects that torch passes to the callback are searched for them. An offset
 * counts if it is the only match, in each of several calls. Memory is read through the kernel, so
 * that a wrong guess can't fault.
 *
 * A thread begins; for each step of torch_calibration.def it announces the step, runs its operator
 * once, and checks whether it matched; then it finishes. Only one thread does this, and only once.
 */
#ifndef TORSH_SHIM_TORCH_TORCH_CALIBRATION_H
#define TORSH_SHIM_TORCH_TORCH_CALIBRATION_H

#include <stdbool.h>
#include <stdint.h>

/* Begin the calibration on this thread. Returns 0 or -EALREADY. */
int torsh_torch_calibration_begin(void);

/* Announce the step of this name; false: there is none. */
bool torsh_torch_calibration_expect(const char *step);

/* Whether the announced step's operator ran and matched. */
bool torsh_torch_calibration_fitted(void);

/* End the calibration. Returns whether shapes can be read: then torsh_torch_is_calibrated. */
bool torsh_torch_calibration_finish(void);

/*
 * Begin the same for process groups when the first one is made, after shapes were calibrated:
 * object is the Python object of the group that the next step's operator gets. Returns 0, or
 * -EALREADY or -ENOENT.
 */
int torsh_torch_calibration_begin_groups(void);

/* Set the Python object of the group that the next step's operator gets. */
void torsh_torch_calibration_take_group(const void *object);

/* Returns whether groups can be distinguished: then torsh_torch_has_groups. */
bool torsh_torch_calibration_finish_groups(void);

/* The c10d::ProcessGroup of a Python object; 0 if it can't be found. */
uintptr_t torsh_torch_group_of(const void *object);

/*
 * Whether this thread is calibrating. The operators that it runs meanwhile are not the program's.
 */
extern _Thread_local bool torsh_torch_is_calibrating;

/* An operator of the calibrating thread begins. */
void torsh_torch_calibration_look(const void *record, const char *name);

#endif
