/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Suppression rules in LeakSanitizer's syntax. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/memory/leaks/rules/suppress.h"

static void a_pattern_matches_anywhere_in_a_name(void **state)
{
	(void)state;
	assert_true(torsh_suppress_matches("leak", "my_leaking_function"));
	assert_true(torsh_suppress_matches("leak", "leak"));
	assert_false(torsh_suppress_matches("leak", "lea"));
	assert_false(torsh_suppress_matches("Leak", "leak"));
}

static void a_star_stands_for_anything(void **state)
{
	(void)state;
	assert_true(torsh_suppress_matches("a*c", "xxabbbcxx"));
	assert_true(torsh_suppress_matches("a*c", "ac"));
	assert_false(torsh_suppress_matches("a*c", "ab"));
	assert_true(torsh_suppress_matches("a*b*c", "a1b2b3c"));
	assert_true(torsh_suppress_matches("*", ""));
	assert_true(torsh_suppress_matches("lib*.so", "/usr/lib/libfoo.so.1"));
}

static void anchors_tie_a_pattern_to_the_ends(void **state)
{
	(void)state;
	assert_true(torsh_suppress_matches("^main", "main_loop"));
	assert_false(torsh_suppress_matches("^main", "the_main"));
	assert_true(torsh_suppress_matches("main$", "the_main"));
	assert_false(torsh_suppress_matches("main$", "main_loop"));
	assert_true(torsh_suppress_matches("^main$", "main"));
	assert_false(torsh_suppress_matches("^main$", "main2"));
	assert_true(torsh_suppress_matches("^a*z$", "abz_z"));
	assert_true(torsh_suppress_matches("b$", "bab"));
	assert_false(torsh_suppress_matches("^a*z$", "abzy"));
}

static void comments_and_empty_lines_are_no_rules(void **state)
{
	struct suppress suppress = {0};
	unsigned line;

	(void)state;
	assert_int_equal(torsh_suppress_parse(&suppress,
					      "# kept on purpose\n"
					      "\n"
					      "leak:first\n"
					      "   leak:second  # behind a rule\r\n"
					      "leak:lambda()#1\n",
					      &line),
			 0);
	assert_int_equal(suppress.n, 3);
	assert_string_equal(suppress.rules[0].pattern, "first");
	assert_string_equal(suppress.rules[1].pattern, "second");
	assert_string_equal(suppress.rules[2].pattern, "lambda()#1");
	assert_int_equal(torsh_suppress_find(&suppress, SUPPRESS_LEAK, 1, "the second one"), 1);
	assert_int_equal(torsh_suppress_find(&suppress, SUPPRESS_LEAK, 1, "none"), -1);
	assert_int_equal(torsh_suppress_find(&suppress, SUPPRESS_LEAK, 1, NULL), -1);
	torsh_suppress_free(&suppress);
}

static void a_line_of_another_kind_is_named(void **state)
{
	struct suppress suppress = {0};
	unsigned line = 0;

	(void)state;
	assert_int_equal(torsh_suppress_parse(&suppress, "leak:a\n\nrace:b\nleak:c\n", &line),
			 -EINVAL);
	assert_int_equal(line, 3);
	assert_int_equal(torsh_suppress_parse(&suppress, "leak:\n", &line), -EINVAL);
	assert_int_equal(line, 1);
	torsh_suppress_free(&suppress);
}

static void rules_are_read_from_a_file(void **state)
{
	static const char text[] = "leak:one\nleak:two\n";
	char path[] = "/tmp/torsh-suppress-XXXXXX";
	int fd = mkstemp(path);
	struct suppress suppress = {0};
	unsigned line;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	close(fd);
	assert_int_equal(torsh_suppress_read(&suppress, path, &line), 0);
	assert_int_equal(suppress.n, 2);
	assert_string_equal(suppress.rules[1].pattern, "two");
	unlink(path);
	assert_int_equal(torsh_suppress_read(&suppress, path, &line), -ENOENT);
	torsh_suppress_free(&suppress);
}

static void rules_of_both_kinds_are_matched_apart(void **state)
{
	struct suppress suppress = {0};
	unsigned line;

	(void)state;
	assert_int_equal(torsh_suppress_parse(&suppress, "leak:one\nkept:two\n", &line), 0);
	assert_int_equal(torsh_suppress_find(&suppress, SUPPRESS_LEAK, 1, "one two"), 0);
	assert_int_equal(torsh_suppress_find(&suppress, SUPPRESS_KEPT, 1, "one two"), 1);
	assert_string_equal(torsh_suppress_kind(&suppress.rules[0]), "leak");
	assert_string_equal(torsh_suppress_kind(&suppress.rules[1]), "kept");
	torsh_suppress_free(&suppress);
}

/* Only rules that aren't built in are compared with all that DWARF has. */
static void own_rules_are_told_from_built_in_ones(void **state)
{
	struct suppress suppress = {0};
	unsigned line;

	(void)state;
	torsh_suppress_add_built_in(&suppress);
	assert_false(torsh_suppress_has_own(&suppress, SUPPRESS_LEAK, 1));
	assert_true(torsh_suppress_find(&suppress, SUPPRESS_WITHIN, 1, "allocate_from_new_pool") >=
		    0);
	assert_int_equal(torsh_suppress_find(&suppress, SUPPRESS_WITHIN, 1, "main"), -1);
	torsh_suppress_add_own(&suppress, 2, "program", "leak:mine\n");
	assert_false(torsh_suppress_has_own(&suppress, SUPPRESS_LEAK, 1));
	assert_true(torsh_suppress_has_own(&suppress, SUPPRESS_LEAK, 2));
	assert_false(torsh_suppress_has_own(&suppress, SUPPRESS_KEPT, 2));
	assert_int_equal(torsh_suppress_parse(&suppress, "kept:mine\n", &line), 0);
	assert_true(torsh_suppress_has_own(&suppress, SUPPRESS_KEPT, 1));
	torsh_suppress_free(&suppress);
}

/* The readable file and the built-in rules are the same. */
static void built_in_rules_come_last_and_are_marked(void **state)
{
	struct suppress suppress = {0}, file = {0};
	unsigned line;

	(void)state;
	assert_int_equal(torsh_suppress_parse(&suppress, "leak:own\n", &line), 0);
	torsh_suppress_add_built_in(&suppress);
	assert_int_equal(
		torsh_suppress_read(&file, "tools/memory/leaks/rules/default.suppressions", &line),
		0);
	assert_int_equal(suppress.n, file.n + 1);
	assert_false(suppress.rules[0].is_built_in);
	for (size_t i = 0; i < file.n; i++) {
		assert_true(suppress.rules[i + 1].is_built_in);
		assert_string_equal(suppress.rules[i + 1].pattern, file.rules[i].pattern);
		assert_int_equal(suppress.rules[i + 1].kind, file.rules[i].kind);
	}
	torsh_suppress_free(&file);
	torsh_suppress_free(&suppress);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pattern_matches_anywhere_in_a_name),
		cmocka_unit_test(a_star_stands_for_anything),
		cmocka_unit_test(anchors_tie_a_pattern_to_the_ends),
		cmocka_unit_test(comments_and_empty_lines_are_no_rules),
		cmocka_unit_test(a_line_of_another_kind_is_named),
		cmocka_unit_test(rules_are_read_from_a_file),
		cmocka_unit_test(rules_of_both_kinds_are_matched_apart),
		cmocka_unit_test(own_rules_are_told_from_built_in_ones),
		cmocka_unit_test(built_in_rules_come_last_and_are_marked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
