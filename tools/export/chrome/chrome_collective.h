/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TORSH_EXPORT_CHROME_CHROME_COLLECTIVE_H
#define TORSH_EXPORT_CHROME_CHROME_COLLECTIVE_H

#include "tools/timeline/prepass/process_groups.h"

/* What Kineto says of a collective: members of a JSON object, which the caller frees. */
char *torsh_chrome_collective(const struct collective *collective);

#endif
