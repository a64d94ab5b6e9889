/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Repetitions in sequences that are written as texts. A letter is an operator of 10 us, a capital
 * one a call of a module that lasts until the next bracket or pause; 1 us is between two of them,
 * 2 us before a bracket, 1 s at "_". Brackets are around the expected repetitions. N* repeats what
 * follows in braces.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/timeline/steps/repeats.h"

#define PLACES_MAX 20000u
#define OPERATOR_NS 10000u
#define SECOND_NS UINT64_C(1000000000)

/* A text, read. */
struct story {
	struct op_place places[PLACES_MAX];
	size_t n;
	size_t starts[PLACES_MAX], ends[PLACES_MAX]; /* of the expected repetitions */
	size_t n_starts, n_ends;
	uint64_t now_ns, pause_ns;
	struct op_place *module; /* that is open */
};

static struct story story;

static void end_module(void)
{
	if (story.module)
		story.module->end_ns = story.now_ns;
	story.module = NULL;
}

static void add_place(char letter)
{
	struct op_place *place = &story.places[story.n++];
	bool is_module = isupper(letter);

	assert_true(story.n <= PLACES_MAX);
	story.now_ns += story.pause_ns;
	*place = (struct op_place){
		.start_ns = story.now_ns,
		.end_ns = story.now_ns + (is_module ? 0 : OPERATOR_NS),
		.pause_ns = story.n > 1 ? story.pause_ns : 0,
		.symbol = (uint32_t)letter << 1 | is_module,
	};
	if (is_module) {
		story.module = place;
		return;
	}
	story.now_ns = place->end_ns;
	story.pause_ns = 1000;
}

static const char *closing_of(const char *open)
{
	size_t depth = 0;

	for (;; open++) {
		depth += *open == '{';
		if (*open == '}' && --depth == 0)
			return open;
	}
}

static void read_text(const char *text, const char *end)
{
	for (; text < end; text++) {
		if (isdigit(*text)) {
			char *star;
			unsigned long times = strtoul(text, &star, 10);
			const char *close = closing_of(star + 1);

			while (times--)
				read_text(star + 2, close);
			text = close;
		} else if (*text == '[') {
			end_module();
			story.starts[story.n_starts++] = story.n;
			story.pause_ns += 1000;
		} else if (*text == ']') {
			end_module();
			story.ends[story.n_ends++] = story.n;
		} else if (*text == '_') {
			end_module();
			story.pause_ns = SECOND_NS;
		} else if (*text != ' ') {
			add_place(*text);
		}
	}
}

/* Returns the certainty, after comparing the repetitions with the expected ones. */
static double compare(const char *text)
{
	struct repeats repeats;

	memset(&story, 0, sizeof(story));
	read_text(text, text + strlen(text));
	end_module();
	torsh_repeats_find(&repeats, story.places, story.n);
	if (repeats.n != story.n_starts)
		print_message("%s\n", text);
	assert_int_equal(repeats.n, story.n_starts);
	for (size_t i = 0; i < repeats.n; i++) {
		const struct op_place *last = &story.places[story.ends[i] - 1];

		if (repeats.items[i].first != story.starts[i])
			print_message("%s: %zu\n", text, i);
		assert_int_equal(repeats.items[i].first, story.starts[i]);
		assert_int_equal(repeats.items[i].end, story.ends[i]);
		assert_int_equal(repeats.items[i].start_ns, story.places[story.starts[i]].start_ns);
		assert_true(repeats.items[i].end_ns >= last->end_ns);
		assert_true(repeats.items[i].end_ns - last->end_ns < 2000);
	}
	free(repeats.items);
	return repeats.certainty;
}

struct example {
	const char *text;
	double least, most; /* certainty */
};

static void compare_all(const struct example *examples, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		double certainty = compare(examples[i].text);

		if (certainty < examples[i].least || certainty > examples[i].most)
			print_message("%s: %f\n", examples[i].text, certainty);
		assert_true(certainty >= examples[i].least && certainty <= examples[i].most);
	}
}

#define COMPARE_ALL(examples) compare_all(examples, sizeof(examples) / sizeof(*examples))

static void equal_forwards_are_steps_each(void **state)
{
	static const struct example examples[] = {
		{"120*{[abcdefgh]}", 1, 1},
		{"40*{[abcdefgh]}_40*{[abcdefgh]}_40*{[abcdefgh]}", 1, 1},
		{"3*{[abcde]}", .6, .63}, /* of five operators: an eighth of them */
		{"12*{[a]}", .125, .125},
		{"60*{[ab]}", .25, .25},
		{"30*{[ababacad]}", .95, 1},
	};

	(void)state;
	COMPARE_ALL(examples);
}

static void what_comes_before_and_after_is_in_no_step(void **state)
{
	static const struct example examples[] = {
		{"xyzxw 20*{[abcdefgh]}xyz", .9, 1},  {"xyz_20*{[abcdefgh]}_x_y_z", .9, 1},
		{"3*{r 20*{[abcdefgh]}}", .95, 1}, /* something before each burst */
		{"3*{r 20*{[abcdefgh]}sv_}", .95, 1}, /* before and after it */
		{"3*{_20*{[abcdefgh]}a}", .95, 1}, /* which is an operator of the step, too */
	};

	(void)state;
	COMPARE_ALL(examples);
}

static void layers_are_no_steps(void **state)
{
	static const struct example examples[] = {
		{"40*{[e 4*{nqkvo} nh]}", .95, 1},
		{"40*{[e 12*{nqkvo} nh]}", .95, 1},
		{"20*{[er 8*{nqkvonuud}h]}", .95, 1},
		/* Nothing but layers: modules show which of them belong together. */
		{"40*{[M 30*{ab}]}", 1, 1},
		{"3*{[M 96*{nqkvo}h]}", 1, 1},
	};

	(void)state;
	COMPARE_ALL(examples);
}

static void tokens_are_steps(void **state)
{
	static const struct example examples[] = {
		/* A prompt's forward differs from those with a cache. */
		{"3*{[ebbbbh]39*{[ebcbcbcbch]}}", .9, 1},
		{"3*{[Mebbbbh]39*{[Mebcbcbcbch]}}", .9, 1},
		/* What joins the tokens at the end of each call belongs to no step. */
		{"3*{[Mebbbbhsg]39*{[Mebcbcbcbchsg]}x}", .9, 1},
		{"60*{[Mebbbbhsg][Mebcbcbcbchsg]}", .9, 1},
		{"4*{[Mebbbbhsg]_30*{[Mebcbcbcbchsg]}_}", .9, 1},
	};

	(void)state;
	COMPARE_ALL(examples);
}

static void steps_may_begin_before_the_module(void **state)
{
	static const struct example examples[] = {
		{"20*{[tMabcs]}_20*{[tMabcs]}_", 1, 1},
		{"w_20*{[tMabcs]}_w_20*{[tMabcs]}", .95, 1},
		{"40*{[Mab Nbc]}", 1, 1},
		{"40*{[Mab Nbcs]_}", 1, 1},
	};

	(void)state;
	COMPARE_ALL(examples);
}

static void some_steps_may_differ(void **state)
{
	static const struct example examples[] = {
		{"10*{[abcdefgh]}[abcdxyefgh]10*{[abcdefgh]}", .9, .97},
		{"10*{[abcdefgh]}[abcdgh]10*{[abcdefgh]}", .9, .98},
		/* Every tenth one also logs. */
		{"8*{9*{[abcdefgh]}[abcdefgh]l}", .9, 1},
		/* All differ: a module shows that they are steps, with little certainty. */
		{"[Ma][Mab][Mabc][Mabcd][Mabcde][Mabcdef]", 0, .1},
		{"20*{[Mab][Mac]}", 1, 1},
	};

	(void)state;
	COMPARE_ALL(examples);
}

static void what_does_not_repeat_has_no_steps(void **state)
{
	static const struct example examples[] = {
		{"", 0, 0},
		{"a", 0, 0},
		{"abc", 0, 0},
		{"aaa", 0, 0},
		{"ababab", 0, 0},
		{"abcdefghijklmnopqrstuvwxyz", 0, 0},
		{"abcabc defghijklmnopqrstuvwxyz", 0, 0},
		{"MabNcdOef", 0, 0},
		{"MabcdefMghijkl", 0, 0},
		/* A beginning of equal layers, and then something else for long. */
		{"5*{abc}defghijklmnopqrstuvwxyzzyxwvutsrqponmlkjihgfed", 0, 0},
		{"abbabaabbaababbabaababbaabbabaab", 0,
		 0}, /* of Thue and Morse: no three in a row */
		{"aabcabbcaccbabcbbacacbcabbacabcbcaabccabbbcaacb", 0, 0},
	};

	(void)state;
	COMPARE_ALL(examples);
}

/* Random sequences of few operators. */
static void chance_has_no_steps(void **state)
{
	uint64_t random = 1;

	(void)state;
	for (unsigned i = 0; i < 200; i++) {
		struct repeats repeats;
		unsigned n_letters = 2 + i % 8;

		memset(&story, 0, sizeof(story));
		for (unsigned k = 0; k < 100 + i; k++) {
			random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
			add_place((char)('a' + (random >> 33) % n_letters));
		}
		torsh_repeats_find(&repeats, story.places, story.n);
		assert_int_equal(repeats.n, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_forwards_are_steps_each),
		cmocka_unit_test(what_comes_before_and_after_is_in_no_step),
		cmocka_unit_test(layers_are_no_steps),
		cmocka_unit_test(tokens_are_steps),
		cmocka_unit_test(steps_may_begin_before_the_module),
		cmocka_unit_test(some_steps_may_differ),
		cmocka_unit_test(what_does_not_repeat_has_no_steps),
		cmocka_unit_test(chance_has_no_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
