/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What programs of the tests ask of CUDA must succeed: else they say what did not, and end. */
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
