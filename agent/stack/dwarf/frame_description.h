/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Finds the description (FDE, with its CIE) of the function at a pc in the .eh_frame of a loaded
 * object. No lock, no allocation, no system call.
 */
#ifndef TORSH_AGENT_STACK_DWARF_FRAME_DESCRIPTION_H
#define TORSH_AGENT_STACK_DWARF_FRAME_DESCRIPTION_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/modules/loaded_object.h"
#include "agent/stack/dwarf/dwarf_bytes.h"

struct frame_description {
	const uint8_t *fde; /* its length field */
	uintptr_t start, end; /* of the code */
	struct dwarf_bytes cie_program, fde_program;
	uint64_t code_factor;
	int64_t data_factor;
	uint8_t encoding; /* of addresses in the FDE */
	bool has_augmentation_data, is_signal_frame;
};

/*
 * Read the description of the function at pc; eh_frame_hdr and memory are those of the object that
 * contains pc. Handles damaged data: only memory is read. Returns 0, -ENOENT if nothing describes
 * pc, or -EINVAL for unsupported data; *d is then meaningless.
 */
int torsh_frame_description_find(const uint8_t *eh_frame_hdr, const struct object_memory *memory,
				 uintptr_t pc, struct frame_description *d);

#endif
