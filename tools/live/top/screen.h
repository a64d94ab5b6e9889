/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The terminal that `torsh top` draws on. */
#ifndef TORSH_LIVE_TOP_SCREEN_H
#define TORSH_LIVE_TOP_SCREEN_H

#include "tools/live/top/frame.h"

/*
 * Show top, refreshed every interval_ms, until the user quits (true) or the session ends (false).
 * Ends the program if the terminal cannot be drawn on.
 */
bool torsh_top_show(struct top *top, int interval_ms);

#endif
