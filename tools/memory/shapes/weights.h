/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Which inputs of an operator are weights, by their position. */
#ifndef TORSH_MEMORY_SHAPES_WEIGHTS_H
#define TORSH_MEMORY_SHAPES_WEIGHTS_H

#include "tools/timeline/inputs.h"

/* Whether an item of the inputs is a weight, alone or in a list. */
bool torsh_weights_have(const char *operator_name, const struct inputs *inputs, uint32_t item);

#endif
