/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the stack of an allocation shows of its memory: Python's modules, and libraries. */
#ifndef TORSH_DEVICE_OWNERS_STACK_EVIDENCE_H
#define TORSH_DEVICE_OWNERS_STACK_EVIDENCE_H

#include "tools/device/owners/tensor_kind.h"
#include "tools/symbols/symbols.h"

struct shown_by_stack {
	enum stack_evidence evidence;
	const char *library; /* of STACK_OF_LIBRARY: "cublas" and the like */
};

/*
 * Read a stack, the innermost frame first. Of a framework's tensor only functions that get
 * workspaces count; of an allocation from the driver, any frame in a library.
 */
struct shown_by_stack torsh_stack_evidence(const struct recorded_process *process, uint32_t stack,
					   struct symbols *symbols, bool is_tensor);

#endif
