/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TORSH_EXPORT_CHROME_CHROME_COLLECTIVE_H
#define TORSH_EXPORT_CHROME_CHROME_COLLECTIVE_H

#include "tools/timeline/prepass/process_groups.h"

/* Kineto's members for a collective, as the inside of a JSON object; the caller frees it. */
char *torsh_chrome_collective(const struct collective *collective);

#endif
