/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/hooks.h"

int torsh_heap_exceptions;
