/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The pages of an object's file that hold its unwind information. Who reads them maps them, sixteen
 * for each one that is read: tens of MiB of PyTorch's, which the bare program does not have
 * resident. They are unmapped again after some reads. The page cache keeps them, so that the next
 * read finds them there.
 */
#ifndef TORSH_AGENT_STACK_UNWIND_PAGES_H
#define TORSH_AGENT_STACK_UNWIND_PAGES_H

#include "agent/modules/module_watch.h"

/*
 * Call after each read of the module's unwind information, while nobody can unmap it (see
 * torsh_modules_find). Only pages that the kernel can read again from the file are unmapped: see
 * torsh_object_clean_span.
 */
void torsh_unwind_pages_were_read(const struct module *module);

#endif
