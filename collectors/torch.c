/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/hooks.h"

void torsh_torch_found(void)
{
}
