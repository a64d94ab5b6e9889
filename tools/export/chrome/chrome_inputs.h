/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The inputs of an operator as members of a Chrome event's args, in the words of torch.profiler. */
#ifndef TORSH_EXPORT_CHROME_CHROME_INPUTS_H
#define TORSH_EXPORT_CHROME_CHROME_INPUTS_H

#include "tools/timeline/inputs.h"

/*
 * Returns "\"Input Dims\": [[2, 3], []], \"Input type\": [\"float\", \"Scalar\"], ...", or ""
 * without inputs. The caller frees it.
 */
char *torsh_chrome_inputs(const struct inputs *inputs);

#endif
