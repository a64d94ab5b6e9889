/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The pages of an object's file that hold its unwind information. Reading one maps sixteen: tens of
 * MiB of PyTorch's, which are not resident without the agent. They are unmapped again after some
 * reads; the page cache keeps them for the next read.
 */
#ifndef TORSH_AGENT_STACK_UNWIND_PAGES_H
#define TORSH_AGENT_STACK_UNWIND_PAGES_H

#include "agent/modules/module_watch.h"

/*
 * Call after each read of the module's unwind information for the code at pc, while no thread can
 * unmap it (see torsh_modules_find). Only pages that the kernel can read again from the file are
 * unmapped: see torsh_object_clean_span.
 */
void torsh_unwind_pages_were_read(const struct module *module, uintptr_t pc);

#endif
