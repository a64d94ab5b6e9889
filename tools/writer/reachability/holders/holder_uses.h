/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Since when the blocks that holders are about were kept, and which operator read them last. */
#ifndef TORSH_WRITER_REACHABILITY_HOLDERS_HOLDER_USES_H
#define TORSH_WRITER_REACHABILITY_HOLDERS_HOLDER_USES_H

#include "tools/writer/reachability/holders/holders.h"
#include "tools/writer/reachability/judged_moment.h"

/* Fill the uses, which have their addresses, from the moment. */
void torsh_holder_uses_find(struct holders *holders, const struct judged_moment *moment);

#endif
