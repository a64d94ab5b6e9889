/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ops/inductor/cpp_loops.h"

#include <string.h>

void torsh_cpp_loops_start(struct cpp_loops *loops)
{
	memset(loops, 0, sizeof(*loops));
	loops->n = 1;
}

struct cpp_block *torsh_cpp_loops_at(struct cpp_loops *loops)
{
	return &loops->blocks[loops->n - 1];
}

static void open_block(struct cpp_loops *loops)
{
	if (loops->n == CPP_BLOCKS_MAX) {
		loops->is_broken = true;
		return;
	}
	loops->blocks[loops->n++] = loops->next;
	loops->next.is_lambda = loops->next.is_operation = false;
}

static void close_block(struct cpp_loops *loops)
{
	if (loops->n > 1)
		loops->n--;
	else
		loops->is_broken = true;
	loops->next = *torsh_cpp_loops_at(loops);
	loops->next.is_lambda = loops->next.is_operation = false;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

/* Get the number that the text is: "static_cast<int64_t>(16L)", "0". */
static bool read_number(struct cpp_text text, uint64_t *number)
{
	static const char *const casts[] = {"static_cast<int64_t>(", "static_cast<long>("};
	size_t i = 0;

	for (size_t k = 0; k < sizeof(casts) / sizeof(*casts); k++) {
		if (torsh_cpp_starts(text, casts[k]))
			text = torsh_cpp_behind(text, strlen(casts[k]));
	}
	for (*number = 0; i < text.n && text.at[i] >= '0' && text.at[i] <= '9'; i++) {
		if (__builtin_mul_overflow(*number, 10u, number) ||
		    __builtin_add_overflow(*number, (uint64_t)(text.at[i] - '0'), number))
			return false;
	}
	if (!i)
		return false;
	while (i < text.n && strchr("L) ", text.at[i]))
		i++;
	return i == text.n;
}

/* Returns the text up to the mark, and goes behind it; all of it if there is none. */
static struct cpp_text take_until(struct cpp_text *text, const char *mark)
{
	const char *end = memmem(text->at, text->n, mark, strlen(mark));
	size_t n = end ? (size_t)(end - text->at) : text->n;
	struct cpp_text part = {text->at, n};

	*text = torsh_cpp_behind(*text, end ? n + strlen(mark) : n);
	while (part.n && part.at[part.n - 1] == ' ')
		part.n--;
	return part;
}

/* Returns the variable's name without the ending of a loop that is part of another. */
static struct cpp_text name_of(struct cpp_text name, bool *is_tail, bool *is_inner)
{
	*is_tail = name.n > 5 && memcmp(name.at + name.n - 5, "_tail", 5) == 0;
	*is_inner = name.n > 6 && memcmp(name.at + name.n - 6, "_inner", 6) == 0;
	name.n -= *is_tail ? 5 : *is_inner ? 6 : 0;
	return name;
}

static struct cpp_axis *find_axis(struct cpp_block *block, struct cpp_text name)
{
	for (size_t i = 0; i < block->n_axes; i++) {
		if (block->axes[i].name.n == name.n &&
		    memcmp(block->axes[i].name.at, name.at, name.n) == 0)
			return &block->axes[i];
	}
	return NULL;
}

static bool is_axis(struct cpp_text name)
{
	return name.n > 1 && name.at[0] == 'x' && name.at[1] >= '0' && name.at[1] <= '9';
}

/* "for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(7L); x0+=...": its range. */
static void take_loop(struct cpp_loops *loops, struct cpp_text line)
{
	struct cpp_block *next = &loops->next;
	struct cpp_text from, to, name;
	struct cpp_axis axis = {.is_known = true}, *known;
	bool is_tail, is_inner;

	take_until(&line, "(");
	take_until(&line, " ");
	axis.name = name_of(take_until(&line, "="), &is_tail, &is_inner);
	from = take_until(&line, ";");
	name = take_until(&line, "<");
	to = take_until(&line, ";");
	known = find_axis(next, axis.name);
	next->is_loop_of_other |= !is_axis(axis.name) || !name.n;
	if (is_inner || next->is_loop_of_other)
		return;
	axis.is_known = read_number(from, &axis.from) && read_number(to, &axis.to);
	if (known && is_tail)
		*known = axis;
	else if (known || next->n_axes == CPP_AXES_MAX)
		loops->is_broken = true;
	else
		next->axes[next->n_axes++] = axis;
}

/* "x0 >= static_cast<int64_t>(0) && x0 < static_cast<int64_t>(7L)": a part of their ranges. */
static void take_ranges(struct cpp_loops *loops, struct cpp_text line)
{
	struct cpp_block *next = &loops->next;

	while (line.n) {
		struct cpp_text part = take_until(&line, "&&");
		struct cpp_text name = take_until(&part, " ");
		struct cpp_axis *axis = find_axis(next, name);
		bool is_from = torsh_cpp_starts(part, ">= "), is_known;
		uint64_t n = 0;

		if (!axis || (!is_from && !torsh_cpp_starts(part, "< "))) {
			next->is_conditional = true;
			return;
		}
		is_known = read_number(torsh_cpp_behind(part, is_from ? 3 : 2), &n);
		axis->is_known = axis->is_known && is_known;
		if (is_from)
			axis->from = n > axis->from ? n : axis->from;
		else
			axis->to = n < axis->to ? n : axis->to;
	}
}

static void take_condition(struct cpp_loops *loops, struct cpp_text line)
{
	static const char *const likely[] = {"if(C10_LIKELY(", "if(C10_UNLIKELY("};

	for (size_t i = 0; i < sizeof(likely) / sizeof(*likely); i++) {
		size_t n = strlen(likely[i]);

		if (torsh_cpp_starts(line, likely[i]) && line.n > n + 2) {
			take_ranges(loops, (struct cpp_text){line.at + n, line.n - n - 2});
			return;
		}
	}
	loops->next.is_conditional = true;
}

bool torsh_cpp_loops_take(struct cpp_loops *loops, struct cpp_text line)
{
	if (torsh_cpp_starts(line, "{") && line.n == 1)
		open_block(loops);
	else if (torsh_cpp_starts(line, "}") && line.n <= 2)
		close_block(loops);
	else if (torsh_cpp_starts(line, "for(") || torsh_cpp_starts(line, "for ("))
		take_loop(loops, line);
	else if (torsh_cpp_starts(line, "if"))
		take_condition(loops, line);
	else if (torsh_cpp_starts(line, "else"))
		loops->next.is_conditional = true;
	else
		return false;
	return true;
}

bool torsh_cpp_loops_elements(const struct cpp_block *block, uint64_t *n)
{
	*n = 1;
	for (size_t i = 0; i < block->n_axes; i++) {
		const struct cpp_axis *axis = &block->axes[i];
		uint64_t size = axis->to > axis->from ? axis->to - axis->from : 0;

		if (!axis->is_known || __builtin_mul_overflow(*n, size, n))
			return false;
	}
	return true;
}
