/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The terminal that `torsh top` draws on. */
#ifndef TORSH_LIVE_TOP_SCREEN_H
#define TORSH_LIVE_TOP_SCREEN_H

#include "tools/live/top/frame.h"

/*
 * Show top, asking again every interval_ms, until the user has enough (true) or there is nothing
 * more to be seen (false). Dies with a sentence where the terminal can't be drawn on.
 */
bool torsh_top_show(struct top *top, int interval_ms);

#endif
