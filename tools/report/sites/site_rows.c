/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/sites/site_rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/frames/folded_stack.h"
#include "tools/frames/short_name.h"
#include "tools/memory/growth/growth.h"
#include "tools/report/sites/interval_text.h"
#include "tools/terminal/columns.h"
#include "tools/terminal/style.h"
#include "tools/terminal/width.h"

#define NUMBERS_COLUMNS 34 /* columns left of WHERE, without GROWTH */
#define GROWTH_COLUMNS 15
#define STEPS_BYTES 64
#define FUNCTION_COLUMNS 32
#define PLACE_COLUMNS 24 /* minimum, if the terminal is wide enough */
#define INDENT_COLUMNS 8

/* Cut a text to `columns`, 0: unlimited. The caller frees the result. */
static char *fit(char *text, size_t columns, enum text_cut cut)
{
	char *fitted = torsh_columns_cut(text, columns, cut);

	free(text);
	return fitted;
}

bool torsh_site_grows(const struct allocation_site *site, uint64_t *bytes)
{
	uint64_t steps;

	if (!site->first_step || site->last_step <= site->first_step)
		return false;
	steps = (uint64_t)site->last_step - site->first_step + 1;
	*bytes = (site->bytes + steps / 2) / steps;
	return site->blocks >= steps / 2;
}

/* Returns out, which holds SIZE_TEXT_BYTES and a sign. */
static const char *put_blocks(const struct site_rows *rows, uint64_t blocks, char *out)
{
	bool is_less = rows->is_change && (int64_t)blocks < 0;

	*out = '-';
	torsh_size_grouped(is_less ? 0 - blocks : blocks, out + is_less);
	return out;
}

/* Returns whether the row has a growth in bytes per step or second, which is set. */
static bool has_growth(const struct site_rows *rows, const struct allocation_site *site,
		       uint64_t *step_bytes)
{
	if (!rows->has_growth)
		return torsh_site_grows(site, step_bytes);
	*step_bytes = (uint64_t)(torsh_growth_rate(site).bytes + 0.5);
	return site->growth_span > 0;
}

/* The column is left out if no row would have a value there. */
static bool has_growth_column(const struct site_rows *rows)
{
	uint64_t step_bytes;

	for (size_t i = 0; i < rows->n; i++) {
		if (has_growth(rows, &rows->items[i], &step_bytes))
			return true;
	}
	return false;
}

static void print_numbers(FILE *out, const struct site_rows *rows, size_t i, bool shows_growth)
{
	const struct allocation_site *site = &rows->items[i];
	uint64_t step_bytes = 0;
	char bytes[SIZE_TEXT_BYTES], blocks[SIZE_TEXT_BYTES + 1], text[SIZE_TEXT_BYTES];
	char share[SIZE_TEXT_BYTES] = "", growth[SIZE_TEXT_BYTES + 8] = "";

	if (rows->whole_bytes)
		torsh_size_percent((double)site->bytes, (double)rows->whole_bytes, share);
	if (has_growth(rows, site, &step_bytes))
		snprintf(growth, sizeof(growth), "%s/%s", torsh_size_human(step_bytes, text),
			 rows->is_over_time ? "s" : "step");
	fprintf(out, "%3zu %9s %7s %9s ", i + 1, torsh_size_human(site->bytes, bytes), share,
		put_blocks(rows, site->blocks, blocks));
	if (shows_growth)
		fprintf(out, "%14s ", growth);
	fputs("  ", out);
}

/* Put "in steps 1 to 400, pid 12" into out, "" if neither is known or wanted. */
static void put_steps(const struct site_rows *rows, const struct allocation_site *site,
		      char out[STEPS_BYTES])
{
	size_t n;

	*out = '\0';
	if (site->last_step && !site->first_step)
		snprintf(out, STEPS_BYTES, "up to step %" PRIu32, site->last_step - 1);
	else if (site->last_step && site->first_step == site->last_step)
		snprintf(out, STEPS_BYTES, "in step %" PRIu32, site->last_step - 1);
	else if (site->last_step)
		snprintf(out, STEPS_BYTES, "in steps %" PRIu32 " to %" PRIu32, site->first_step - 1,
			 site->last_step - 1);
	n = strlen(out);
	if (rows->with_pid)
		snprintf(out + n, STEPS_BYTES - n, "%spid %" PRIu32, n ? ", " : "",
			 site->process->pid);
}

/* Print the blamed line in so many columns, 0: any number. Returns how many it takes. */
static size_t print_line(FILE *out, const struct frame *frame, size_t columns)
{
	const char *directory = torsh_working_directory();
	char *place = fit(torsh_short_place(frame, directory), columns, CUT_START);
	char *function = fit(torsh_short_frame(frame), columns ? FUNCTION_COLUMNS : 0, CUT_MIDDLE);
	size_t n_place = torsh_columns_of(place), n_function = torsh_columns_of(function);

	torsh_style_print(out, STYLE_PLACE, "%s", place);
	n_function = columns && n_place + n_function >= columns ? 0 : n_function + 1;
	if (n_function)
		fprintf(out, " %s", function);
	free(place);
	free(function);
	return n_place + n_function;
}

/* Steps that the line has no columns for are on the next one. */
static void print_where(FILE *out, const struct site_rows *rows, const struct allocation_site *site,
			const struct folded_stack *stack, size_t n_left)
{
	size_t limit = torsh_width_limit(), n;
	size_t columns = limit > n_left + 16 ? limit - n_left : limit ? 16 : 0;
	char steps[STEPS_BYTES];

	put_steps(rows, site, steps);
	if (stack->blamed.where == FRAME_NONE)
		n = (size_t)fprintf(out, "(no stack was recorded)");
	else
		n = print_line(out, site->frames[stack->blamed.where], columns);
	if (*steps)
		fprintf(out, "%s%s", columns && n + 2 + strlen(steps) > columns ? "\n      " : "  ",
			steps);
	fputc('\n', out);
}

/* Print how many of its blocks are lost, if it was judged. */
static void print_classes(FILE *out, const struct allocation_site *site)
{
	static const char *const texts[N_BLOCK_CLASSES] = {
		[BLOCKS_LOST] = "lost: nothing points to",
		[BLOCKS_INDIRECT] = "lost with another block, which points to",
		[BLOCKS_POSSIBLE] = "possibly lost: only pointers to the inside are left of",
		[BLOCKS_REACHABLE] = "kept: the program can still reach",
	};
	char blocks[SIZE_TEXT_BYTES];

	for (int i = 0; i < N_BLOCK_CLASSES; i++) {
		uint64_t n = site->classes.blocks[i];

		if (texts[i] && n)
			fprintf(out, "      %s %s\n", texts[i],
				n < site->blocks ? torsh_size_counted(n, "block", blocks)
				: n == 1	 ? "it"
						 : "them");
	}
}

static void print_mapped(FILE *out, const struct allocation_site *site)
{
	const char *what = torsh_site_mapped_as(site), *path = torsh_site_mapped_path(site);

	if (what)
		fprintf(out, "      %s%s%s\n", what, path ? " " : "", path ? path : "");
}

/* Print what the blocks are, and the operator and module that allocated them. */
static void print_scope(FILE *out, const struct allocation_site *site)
{
	const char *operator= torsh_site_operator(site), *module = torsh_site_module(site);

	print_classes(out, site);
	if (site->what == SITE_OF_TENSORS)
		fputs("      tensors\n", out);
	if (site->what == SITE_OF_CACHE)
		fputs("      kept by the framework's allocator and not given out\n", out);
	if (site->is_arena)
		fputs("      CPython arena: the line that made it grow is shown\n", out);
	else
		print_mapped(out, site);
	if (operator|| module)
		fprintf(out, "      in %s%s%s\n", operator ? operator : "",
			operator && module ? ", " : "", module ? module : "");
}

static void print_holder(FILE *out, const struct site_rows *rows,
			 const struct allocation_site *site)
{
	char *name = rows->holders ? torsh_holder_name(rows->holders, site) : NULL;

	if (name)
		fprintf(out, "      kept by %s\n", name);
	free(name);
}

static void print_frame(FILE *out, const struct frame *frame, bool is_marked)
{
	const char *directory = torsh_working_directory();
	size_t limit = torsh_width_limit(), n;
	char *function, *place;

	if (frame->cut) {
		fprintf(out, "        ... cut here: %s\n", frame->cut);
		return;
	}
	function = fit(torsh_short_frame(frame),
		       limit > INDENT_COLUMNS + PLACE_COLUMNS + 16
			       ? limit - INDENT_COLUMNS - PLACE_COLUMNS - 1
			       : 0,
		       CUT_MIDDLE);
	n = torsh_columns_of(function);
	if (n < FUNCTION_COLUMNS)
		n = FUNCTION_COLUMNS;
	place = fit(torsh_short_place(frame, directory),
		    limit > INDENT_COLUMNS + n + 9 ? limit - INDENT_COLUMNS - n - 1 : 0, CUT_START);
	fprintf(out, "      %s", is_marked ? torsh_width_has_utf8() ? "▶ " : "> " : "  ");
	fprintf(out, "%s%*s ", function, (int)(n - torsh_columns_of(function)), "");
	torsh_style_print(out, STYLE_PLACE, "%s", place);
	fprintf(out, "%s%s\n", frame->is_inlined ? "  (inlined)" : "",
		frame->is_signal_frame ? "  (signal handler's caller)" : "");
	free(function);
	free(place);
}

static void print_site(FILE *out, const struct site_rows *rows, size_t i, bool shows_growth)
{
	const struct allocation_site *site = &rows->items[i];
	const struct frame *const *frames = site->frames;
	const char *directory = torsh_working_directory();
	/* Many stacks fill an arena: they share only the user's frames. */
	size_t max_rows = site->is_arena && rows->max_rows ? 1 : rows->max_rows;
	struct folded_stack stack;

	torsh_folded_stack(&stack, frames, site->n_frames, max_rows, directory);
	print_numbers(out, rows, i, shows_growth);
	print_where(out, rows, site, &stack, NUMBERS_COLUMNS + (shows_growth ? GROWTH_COLUMNS : 0));
	if (!rows->is_change)
		torsh_interval_text(out, "      ", site->bytes, site->blocks, site->variance);
	print_scope(out, site);
	print_holder(out, rows, site);
	for (size_t k = 0; k < stack.n; k++) {
		const struct folded_row *row = &stack.rows[k];
		char *text;

		if (!row->is_folded) {
			print_frame(out, frames[row->first], row->is_marked);
			continue;
		}
		text = torsh_folded_text(row, frames, directory);
		torsh_style_print(out, STYLE_DIM, "        %s", text);
		fputc('\n', out);
		free(text);
	}
	fputc('\n', out);
	torsh_folded_stack_free(&stack);
}

void torsh_site_rows_print(FILE *out, const struct site_rows *rows)
{
	bool shows_growth = has_growth_column(rows);

	if (!rows->n)
		return;
	fprintf(out, "\n%13s %7s %9s ", rows->heading, rows->whole_bytes ? "SHARE" : "", "BLOCKS");
	if (shows_growth)
		fprintf(out, "%14s ", "GROWTH");
	fputs("  WHERE\n", out);
	for (size_t i = 0; i < rows->n; i++)
		print_site(out, rows, i, shows_growth);
}

static bool is_same_line(const struct frame *a, const struct frame *b)
{
	return a->function == b->function && a->file == b->file && a->line == b->line;
}

size_t torsh_site_rows_lines(const struct allocation_site *sites, size_t n)
{
	const struct frame **lines = torsh_need_items(NULL, 0, n, sizeof(*lines));
	size_t n_lines = 0;

	for (size_t i = 0; i < n; i++) {
		struct blamed_line blamed = torsh_blamed_line(sites[i].frames, sites[i].n_frames,
							      torsh_working_directory());
		size_t k = 0;

		if (!blamed.is_own)
			continue;
		while (k < n_lines && !is_same_line(lines[k], sites[i].frames[blamed.where]))
			k++;
		if (k == n_lines)
			lines[n_lines++] = sites[i].frames[blamed.where];
	}
	free(lines);
	return n_lines;
}
