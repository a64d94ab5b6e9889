/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Floating-point operations of routines of BLAS, LAPACK and libraries of transforms and neural
 * networks, computed from their sizes; nothing is measured. The formulas are those of LAPACK Working Note 41 (Blackford and Dongarra, "Installation
 * Guide for LAPACK", appendix C), with its sums for drivers; of getrf with more columns than rows
 * the transposed one. Scaling by alpha and beta is not counted. A complex multiplication is 6
 * operations, an addition 2. A Fourier transform of N points has the nominal 5 N log2 N of FFTW's
 * benchmark, half of it where one side is real, whatever the algorithm does.
 */
#ifndef TORSH_OPS_LIBRARY_FLOPS_H
#define TORSH_OPS_LIBRARY_FLOPS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "agent/wire/event.h"
#include "tools/recording/recording.h"

/*
 * Set the FLOPs of one such call, at most UINT64_MAX. Returns NULL, or why they are not known: a
 * sentence's end.
 */
const char *torsh_library_flops(const struct recorded_library_call *call, uint64_t *flops);

/*
 * A call as an event has it, with the texts of the routine and the library; its names stay the
 * process's.
 */
struct recorded_library_call torsh_library_call_of(const struct recorded_process *process,
						   const struct event_library_call *event);

/*
 * What a call is called for a reader: the function's name, or the kind of oneDNN's primitive, whose
 * function is always the same.
 */
static inline bool torsh_library_is_primitive(const struct recorded_library_call *call)
{
	return call->name && call->routine && !strcmp(call->name, "dnnl_primitive_execute");
}

static inline const char *torsh_library_title(const struct recorded_library_call *call)
{
	return torsh_library_is_primitive(call) ? call->routine : call->name ? call->name : "?";
}

/* "float64" of a type; NULL: it is another one. */
const char *torsh_library_type(uint32_t type);

#endif
