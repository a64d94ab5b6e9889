/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/recording/estimate.h"

#include <math.h>

#define Z 1.959963984540054 /* 95 % of a normal distribution are within +-Z */

struct estimate_interval torsh_estimate_interval(uint64_t estimate, double variance)
{
	double scale, middle, half, low;

	if (!estimate || !(variance > 0))
		return (struct estimate_interval){.low = estimate, .high = estimate};
	scale = Z * Z * variance / (double)estimate;
	middle = (double)estimate + scale / 2;
	half = sqrt(Z * Z * variance + scale * scale / 4);
	low = middle - half;
	return (struct estimate_interval){
		.low = low > 0 ? (uint64_t)low : 0,
		.high = middle + half < 1e18 ? (uint64_t)ceil(middle + half)
					     : UINT64_C(1000000000000000000),
	};
}
