/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/live/top/screen.h"

#include <curses.h>
#include <locale.h>
#include <stdlib.h>
#include <time.h>

#include "tools/base/die.h"
#include "tools/terminal/terminal.h"

#define LINES_BESIDE 9 /* lines of a frame that are neither processes nor allocation sites */
#define KEYS "q quit   s sort   p hold the view"

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Returns how many bytes fit into so many columns: each UTF-8 character counts as one column. */
static int bytes_in_columns(const char *text, int columns)
{
	int n = 0;

	while (text[n]) {
		if (((unsigned char)text[n] & 0xc0) != 0x80 && columns-- == 0)
			break;
		n++;
	}
	return n;
}

static void draw(const struct top *top)
{
	int n_free = LINES - LINES_BESIDE;
	/* A third of the lines for processes, if there are that many. */
	size_t n_processes = n_free > 3 ? (size_t)n_free / 3 : 1;
	struct top_frame frame;

	torsh_top_frame(&frame, top, n_processes, n_free > 1 ? (size_t)n_free : 1, (size_t)COLS);
	erase();
	for (size_t i = 0; i < frame.n && (int)i < LINES - 1; i++) {
		attrset(frame.lines[i].is_heading ? A_BOLD : A_NORMAL);
		mvaddnstr((int)i, 0, frame.lines[i].text,
			  bytes_in_columns(frame.lines[i].text, COLS));
	}
	attrset(A_REVERSE);
	mvaddnstr(LINES - 1, 0, KEYS, COLS - 1);
	attrset(A_NORMAL);
	refresh();
	torsh_top_frame_free(&frame);
}

/* Restores the terminal, also on a signal. */
static void leave_screen(void)
{
	if (!isendwin())
		endwin();
}

/* Returns false if the user quits. */
static bool take_key(struct top *top, int key)
{
	switch (key) {
	case 'q':
	case 'Q':
		return false;
	case 's':
		top->order = (top->order + 1) % N_TOP_ORDERS;
		break;
	case 'p':
		top->is_held = !top->is_held;
		break;
	default:
		break;
	}
	return true;
}

bool torsh_top_show(struct top *top, int interval_ms)
{
	bool is_there = true, is_wanted = true;

	setlocale(LC_CTYPE, "");
	if (!newterm(NULL, torsh_terminal_raw_output(), stdin))
		torsh_die("this terminal can't be drawn on (TERM); --once prints one frame");
	atexit(leave_screen);
	cbreak();
	noecho();
	curs_set(0);
	keypad(stdscr, TRUE);
	for (int64_t next_ms = now_ms() + interval_ms; is_there && is_wanted;) {
		int64_t left_ms;

		draw(top);
		left_ms = next_ms - now_ms();
		timeout(left_ms > 0 ? (int)left_ms : 0);
		is_wanted = take_key(top, getch());
		if (!is_wanted || now_ms() < next_ms)
			continue;
		if (!top->is_held)
			is_there = torsh_top_look(top);
		next_ms = now_ms() + interval_ms;
	}
	endwin();
	return is_there;
}
