/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * CUDA calls of test programs that must succeed: else the program prints the failed call and ends.
 */
#ifndef TORSH_TEST_LIB_NEED_H
#define TORSH_TEST_LIB_NEED_H

#include <stdio.h>
#include <stdlib.h>

static inline void need(int result, const char *what)
{
	if (!result)
		return;
	fprintf(stderr, "%s: error %d\n", what, result);
	exit(1);
}

#define NEED(call) need((int)(call), #call)

#endif
