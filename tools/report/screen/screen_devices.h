/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Devices on the screen: their time and memory, and the kernels with most time. */
#ifndef TORSH_REPORT_SCREEN_SCREEN_DEVICES_H
#define TORSH_REPORT_SCREEN_SCREEN_DEVICES_H

#include "tools/report/overview_devices.h"

/* Print the section; nothing if no process used or tried to use devices. */
void torsh_screen_devices(const struct overview_devices *devices, struct symbols *symbols);

#endif
