/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The simulated cuSPARSE: what functions.txt cannot express. */
#include "cusparse_api.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT const char *cusparseGetErrorName(cusparseStatus_t status)
{
	return status == CUSPARSE_STATUS_SUCCESS	 ? "CUSPARSE_STATUS_SUCCESS"
	       : status == CUSPARSE_STATUS_NOT_SUPPORTED ? "CUSPARSE_STATUS_NOT_SUPPORTED"
							 : "CUSPARSE_STATUS_EXECUTION_FAILED";
}

EXPORT const char *cusparseGetErrorString(cusparseStatus_t status)
{
	return cusparseGetErrorName(status);
}
