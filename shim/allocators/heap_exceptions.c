/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/hooks.h"
#include "shim/hot.h"

HOT int torsh_heap_exceptions;
