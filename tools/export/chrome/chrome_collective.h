/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TORSH_EXPORT_CHROME_CHROME_COLLECTIVE_H
#define TORSH_EXPORT_CHROME_CHROME_COLLECTIVE_H

#include "tools/timeline/prepass/process_groups.h"

/* Returns Kineto's members for a collective, for torsh_json_put_members; the caller frees them. */
char *torsh_chrome_collective(const struct collective *collective);

#endif
