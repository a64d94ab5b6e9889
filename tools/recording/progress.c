/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/recording/progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tools/terminal/terminal.h"

#define SHOW_AFTER_NS UINT64_C(1000000000)
#define SHOW_EVERY_NS UINT64_C(100000000)
#define BAR_CELLS 40

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void torsh_progress_start(struct progress *progress, const char *what, uint64_t total)
{
	*progress = (struct progress){
		.what = what,
		.total = total,
		.started_ns = now_ns(),
		.is_terminal = torsh_terminal_is(stderr),
	};
}

void torsh_progress_show(struct progress *progress, uint64_t done)
{
	static const char full[] = "########################################";
	uint64_t now;
	int cells;

	if (!progress->is_terminal || !progress->total)
		return;
	now = now_ns();
	if (now - progress->started_ns < SHOW_AFTER_NS || now - progress->shown_ns < SHOW_EVERY_NS)
		return;
	if (done > progress->total)
		done = progress->total;
	cells = (int)((double)done / (double)progress->total * BAR_CELLS);
	torsh_terminal_control(stderr, "\r");
	fprintf(stderr, "%s [%-*.*s] %3d %%", progress->what, BAR_CELLS, cells, full,
		(int)((double)done / (double)progress->total * 100));
	fflush(stderr);
	progress->shown_ns = now;
	progress->is_shown = true;
}

void torsh_progress_end(struct progress *progress)
{
	if (progress->is_shown)
		torsh_terminal_control(stderr, "\r\033[K");
	progress->is_shown = false;
}
