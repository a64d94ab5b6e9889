/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The inputs of an operator as members of a Chrome event's args, as torch.profiler names them. */
#ifndef TORSH_EXPORT_CHROME_CHROME_INPUTS_H
#define TORSH_EXPORT_CHROME_CHROME_INPUTS_H

#include "tools/timeline/inputs.h"

/* The names of a tensor's type: torch's, the C++ type's and c10::toString's. */
struct chrome_type {
	const char *torch, *cpp, *c10;
};

/* Returns the type of a tensor, or NULL for one that is not in the table. */
const struct chrome_type *torsh_chrome_type(const struct input *tensor);

/*
 * Returns "\"Input Dims\": [[2, 3], []], \"Input type\": [\"float\", \"Scalar\"], ...", or ""
 * without inputs. The caller frees it.
 */
char *torsh_chrome_inputs(const struct inputs *inputs);

#endif
