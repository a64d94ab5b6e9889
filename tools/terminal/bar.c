/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/terminal/bar.h"

#include <math.h>
#include <string.h>

#include "tools/terminal/width.h"

#define EIGHTHS 8

/* Horizontal bars, which grow from the left by eighths; the last one is a whole block. */
static const char *const lying[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
/* Vertical bars, which grow from below. */
static const char *const standing[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char ascii_heights[] = " .:-=+*%#";

const char *torsh_bar(double share, size_t columns, char *out)
{
	size_t n_eighths, n_whole;
	char *at = out;

	*out = '\0';
	if (columns > BAR_COLUMNS_MAX)
		columns = BAR_COLUMNS_MAX;
	if (!(share > 0))
		return out;
	n_eighths = (size_t)lround(fmin(share, 1) * (double)columns * EIGHTHS);
	n_eighths = n_eighths ? n_eighths : 1;
	n_whole = n_eighths / EIGHTHS;
	if (!torsh_width_has_utf8()) {
		n_whole = (n_eighths + EIGHTHS - 1) / EIGHTHS;
		memset(out, '#', n_whole);
		out[n_whole] = '\0';
		return out;
	}
	for (size_t i = 0; i < n_whole; i++)
		at = stpcpy(at, lying[EIGHTHS]);
	stpcpy(at, lying[n_eighths % EIGHTHS]);
	return out;
}

const char *torsh_bar_curve(const double *values, size_t n, char *out)
{
	bool has_utf8 = torsh_width_has_utf8();
	double largest = 0;
	char *at = out;

	if (n > BAR_COLUMNS_MAX)
		n = BAR_COLUMNS_MAX;
	for (size_t i = 0; i < n; i++)
		largest = fmax(largest, values[i]);
	*out = '\0';
	for (size_t i = 0; i < n; i++) {
		double share = largest > 0 ? values[i] / largest : 0;
		size_t height = (size_t)lround(share * EIGHTHS);

		if (share > 0 && !height)
			height = 1;
		if (has_utf8)
			at = stpcpy(at, standing[height]);
		else
			*at++ = ascii_heights[height];
	}
	*at = '\0';
	return out;
}
