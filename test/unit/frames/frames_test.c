/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Frames as people read them: their owner, the line to blame, folding, short names, keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "tools/frames/folded_stack.h"
#include "tools/frames/short_name.h"
#include "tools/frames/stack_key.h"

#define DIRECTORY "/home/me/project"
#define PACKAGES "/home/me/venv/lib/python3.11/site-packages/"
#define STANDARD "/usr/lib/python3.11/"
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

#define PYTHON(file_, line_, function_)                                                      \
	{                                                                                    \
		.function = (function_), .file = (file_), .line = (line_), .is_python = true \
	}
#define NATIVE(module_, function_)                                          \
	{                                                                   \
		.function = (function_), .module = (module_), .address = 16 \
	}
#define SOURCE(module_, function_, file_, line_)                                               \
	{                                                                                      \
		.function = (function_), .module = (module_), .file = (file_), .line = (line_) \
	}

#define IMPORT PYTHON("<frozen importlib._bootstrap>", 1176, "_find_and_load")
#define OWN_LIBRARY DIRECTORY "/leaky.cpython-311-x86_64-linux-gnu.so"
#define LIBPYTHON "/root/.pyenv/versions/3.11.7/lib/libpython3.11.so.1.0"
#define LIBTORCH PACKAGES "torch/lib/libtorch_cpu.so"
#define LIBC "/lib/x86_64-linux-gnu/libc.so.6"

#define MAX_FRAMES 64

/* Pointers to each of the frames. */
static const struct frame **all(const struct frame *frames, size_t n)
{
	static const struct frame *pointers[MAX_FRAMES];

	assert_true(n <= MAX_FRAMES);
	for (size_t i = 0; i < n; i++)
		pointers[i] = &frames[i];
	return pointers;
}

#define ALL(frames) all((frames), COUNT(frames)), COUNT(frames)

static enum frame_kind kind_of(struct frame frame)
{
	return torsh_frame_kind(&frame, DIRECTORY);
}

static void python_is_sorted_by_its_path(void **state)
{
	static const struct {
		const char *file, *function;
		enum frame_kind kind;
	} expected[] = {
		{DIRECTORY "/train.py", "main", FRAME_OWN},
		{"train.py", "main", FRAME_OWN},
		{"/srv/other/tool.py", "main", FRAME_OWN},
		{"/home/me/python3/tool.py", "main", FRAME_OWN},
		{"/home/me/library/python3.py", "main", FRAME_OWN},
		{"<string>", "<module>", FRAME_OWN},
		{"<string>", "work", FRAME_OWN},
		{"<stdin>", "<module>", FRAME_OWN},
		{"<ipython-input-3-abc>", "<module>", FRAME_OWN},
		{"<string>", "Point.__init__", FRAME_PACKAGE},
		{"<eval_with_key>.7", "forward", FRAME_PACKAGE},
		{PACKAGES "torch/_ops.py", "f", FRAME_PACKAGE},
		{DIRECTORY "/venv/lib/python3.11/site-packages/six.py", "f", FRAME_PACKAGE},
		{"/usr/lib/python3/dist-packages/yaml/__init__.py", "f", FRAME_PACKAGE},
		{STANDARD "json/encoder.py", "f", FRAME_STANDARD},
		{"/root/.pyenv/versions/3.13.1/lib/python3.13t/json/encoder.py", "f",
		 FRAME_STANDARD},
		{STANDARD "importlib/__init__.py", "import_module", FRAME_IMPORT},
		{"<frozen importlib._bootstrap>", "_find_and_load", FRAME_IMPORT},
		{"<frozen runpy>", "_run_code", FRAME_IMPORT},
		{"<torsh>", "calibrate", FRAME_AGENT},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(expected); i++) {
		enum frame_kind kind =
			kind_of((struct frame)PYTHON(expected[i].file, 1, expected[i].function));

		if (kind != expected[i].kind)
			fail_msg("%s is %d, not %d", expected[i].file, (int)kind,
				 (int)expected[i].kind);
	}
}

static void native_code_is_sorted_by_module_source_and_name(void **state)
{
	static const struct {
		struct frame frame;
		enum frame_kind kind;
	} expected[] = {
		{NATIVE(OWN_LIBRARY, "smooth"), FRAME_OWN},
		{NATIVE("/srv/app", "main"), FRAME_OWN},
		{NATIVE("/root/.cache/torch_extensions/py311_cpu/mine/mine.so", "f"), FRAME_OWN},
		{SOURCE(PACKAGES "mine/_C.so", "f", DIRECTORY "/csrc/mine.cc", 3), FRAME_OWN},
		{SOURCE(PACKAGES "mine/_C.so", "f", "csrc/mine.cc", 3), FRAME_LIBRARY},
		{SOURCE(OWN_LIBRARY, "at::empty", PACKAGES "torch/include/ATen/Functions.h", 3),
		 FRAME_LIBRARY},
		{NATIVE(LIBTORCH, "at::native::mm"), FRAME_LIBRARY},
		{NATIVE("/home/me/pytorch/build/lib/libtorch_cpu.so", "at::mm"), FRAME_LIBRARY},
		{NATIVE("/usr/bin/git", "main"), FRAME_LIBRARY},
		{NATIVE("/usr/lib/x86_64-linux-gnu/libsqlite3.so.0", "sqlite3Malloc"),
		 FRAME_LIBRARY},
		{NATIVE(NULL, NULL), FRAME_LIBRARY},
		{NATIVE(LIBPYTHON, "PyObject_Vectorcall"), FRAME_INTERPRETER},
		{NATIVE("/usr/bin/python3.11", "PyObject_Vectorcall"), FRAME_INTERPRETER},
		{NATIVE(STANDARD "lib-dynload/_json.cpython-311-x86_64-linux-gnu.so", "f"),
		 FRAME_INTERPRETER},
		{NATIVE("/srv/python-app", "main"), FRAME_OWN},
		{NATIVE("/lib/x86_64-linux-gnu/libstdc++.so.6", "operator new(unsigned long)"),
		 FRAME_CXX},
		{NATIVE(OWN_LIBRARY, "void std::vector<int>::push_back(int const&)"), FRAME_CXX},
		{SOURCE(OWN_LIBRARY, "move", "/usr/include/c++/12/bits/move.h", 1), FRAME_CXX},
		{NATIVE(OWN_LIBRARY, "std::string my::name(std::string)"), FRAME_OWN},
		{NATIVE(OWN_LIBRARY, "my::standard::f(std::string)"), FRAME_OWN},
		{NATIVE(LIBC, "strdup"), FRAME_C_LIBRARY},
		{NATIVE("/lib64/ld-linux-x86-64.so.2", "call_init"), FRAME_C_LIBRARY},
		{NATIVE("/srv/app", "_start"), FRAME_C_LIBRARY},
		{NATIVE("/opt/torsh/libtorshagent.so", "malloc"), FRAME_AGENT},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(expected); i++) {
		enum frame_kind kind = kind_of(expected[i].frame);

		if (kind != expected[i].kind)
			fail_msg("row %zu, %s, is %d, not %d", i,
				 expected[i].frame.function ? expected[i].frame.function : "?",
				 (int)kind, (int)expected[i].kind);
	}
}

static void expect_blamed(const struct frame *const *frames, size_t n, size_t where,
			  size_t innermost, bool is_own)
{
	struct blamed_line blamed = torsh_blamed_line(frames, n, DIRECTORY);

	assert_int_equal(blamed.where, where);
	assert_int_equal(blamed.innermost, innermost);
	assert_int_equal(blamed.is_own, is_own);
}

static void the_users_python_line_is_to_blame_and_own_c_is_marked(void **state)
{
	static const struct frame frames[] = {
		NATIVE(LIBC, "strdup"),
		SOURCE(OWN_LIBRARY, "copy_history", "leaky.c", 24),
		SOURCE(OWN_LIBRARY, "smooth", "leaky.c", 55),
		NATIVE(LIBPYTHON, "PyObject_Vectorcall"),
		PYTHON(DIRECTORY "/train.py", 30, "main"),
		PYTHON(DIRECTORY "/train.py", 35, "<module>"),
	};

	(void)state;
	expect_blamed(ALL(frames), 4, 1, true);
	expect_blamed(all(frames, 4), 4, 1, 1, true);
	expect_blamed(all(frames + 3, 3), 3, 1, 1, true);
}

static void libraries_and_imports_are_not_to_blame(void **state)
{
	static const struct frame frames[] = {
		NATIVE(LIBTORCH, "at::empty"),
		PYTHON(PACKAGES "torch/nn/modules/module.py", 1501, "Module._call_impl"),
		PYTHON(STANDARD "contextlib.py", 81, "inner"),
		IMPORT,
		PYTHON("/srv/model.py", 7, "forward"),
		PYTHON(DIRECTORY "/train.py", 35, "<module>"),
	};

	(void)state;
	expect_blamed(ALL(frames), 4, 4, true);
}

static void without_own_code_the_best_of_the_rest_is_to_blame(void **state)
{
	static const struct frame package[] = {
		NATIVE(LIBTORCH, "at::empty"),
		PYTHON(STANDARD "contextlib.py", 81, "inner"),
		PYTHON(PACKAGES "torch/hub.py", 15, "load"),
	};
	static const struct frame native[] = {
		NATIVE(LIBC, "strdup"),
		NATIVE("/usr/bin/git", "xstrdup"),
		NATIVE("/usr/bin/git", "main"),
	};
	static const struct frame plumbing[] = {NATIVE(LIBC, "strdup"), NATIVE(LIBC, "setlocale")};

	(void)state;
	expect_blamed(ALL(package), 2, 2, false);
	expect_blamed(all(package, 2), 2, 1, 1, false);
	expect_blamed(ALL(native), 1, 1, false);
	expect_blamed(ALL(plumbing), 0, 0, false);
	expect_blamed(all(plumbing, 0), 0, FRAME_NONE, FRAME_NONE, false);
}

/* The rows as text: "f" a frame's function, "(…)" a folded row, "*" the marked one. */
static void expect_rows(const struct frame *const *frames, size_t n, size_t max_rows,
			const char *expected)
{
	struct folded_stack stack;
	char found[4096] = "";

	torsh_folded_stack(&stack, frames, n, max_rows, DIRECTORY);
	for (size_t i = 0; i < stack.n; i++) {
		const struct folded_row *row = &stack.rows[i];
		char *folded = torsh_folded_text(row, frames, DIRECTORY);

		strcat(found, i ? " | " : "");
		strcat(found, row->is_marked ? "*" : "");
		strcat(found, row->is_folded ? folded : frames[row->first]->function);
		free(folded);
	}
	assert_string_equal(found, expected);
	torsh_folded_stack_free(&stack);
}

static void runs_of_plumbing_are_one_row(void **state)
{
	static const struct frame frames[] = {
		NATIVE(LIBC, "strdup"),
		SOURCE(OWN_LIBRARY, "smooth", "leaky.c", 55),
		NATIVE(LIBPYTHON, "cfunction_vectorcall_O"),
		NATIVE(LIBPYTHON, "PyObject_Vectorcall"),
		PYTHON(DIRECTORY "/train.py", 30, "main"),
		IMPORT,
		IMPORT,
		IMPORT,
		PYTHON(DIRECTORY "/run.py", 3, "<module>"),
		NATIVE(LIBPYTHON, "Py_RunMain"),
		NATIVE(LIBC, "__libc_start_main"),
		NATIVE("/usr/bin/python3", "_start"),
	};

	(void)state;
	expect_rows(ALL(frames), FOLDED_ROWS,
		    "strdup | *smooth | … 2 frames of Python | main | … 3 frames of importlib | "
		    "<module> | … 3 frames of the C library and Python");
	expect_rows(all(frames, 5), 5, 0,
		    "strdup | *smooth | cfunction_vectorcall_O | PyObject_Vectorcall | main");
}

static void a_long_stack_has_its_own_frames_and_the_innermost(void **state)
{
	static const struct frame torch = NATIVE(LIBTORCH, "at"),
				  own = PYTHON(DIRECTORY "/model.py", 5, "own");
	const struct frame *frames[48];
	struct folded_stack stack;

	(void)state;
	for (size_t i = 0; i < COUNT(frames); i++)
		frames[i] = i == 20 || i == 30 || i == 40 ? &own : &torch;
	torsh_folded_stack(&stack, frames, COUNT(frames), FOLDED_ROWS, DIRECTORY);
	assert_true(stack.n <= FOLDED_ROWS);
	assert_int_equal(stack.rows[0].first, 0);
	assert_false(stack.rows[0].is_folded);
	for (size_t i = 0, n = 0; i < stack.n; n += stack.rows[i++].n)
		assert_int_equal(stack.rows[i].first, n);
	torsh_folded_stack_free(&stack);
	expect_rows(
		frames, COUNT(frames), 5,
		"… 20 frames of torch | *own | … 9 frames of torch | own | … 17 frames of torch and your code");
}

static void every_length_is_folded_within_the_limit(void **state)
{
	static const struct frame kinds[] = {
		IMPORT,
		NATIVE(LIBTORCH, "at"),
		PYTHON(DIRECTORY "/model.py", 5, "own"),
		NATIVE(OWN_LIBRARY, "f"),
		NATIVE(LIBC, "g"),
	};
	unsigned seed = 1;

	(void)state;
	for (size_t n = 0; n < MAX_FRAMES; n++) {
		const struct frame *frames[MAX_FRAMES];
		struct folded_stack stack;
		size_t n_frames = 0;

		for (size_t i = 0; i < n; i++) {
			seed = seed * 1103515245u + 12345u;
			frames[i] = &kinds[seed / 65536u % COUNT(kinds)];
		}
		torsh_folded_stack(&stack, frames, n, FOLDED_ROWS, DIRECTORY);
		assert_true(stack.n <= FOLDED_ROWS);
		for (size_t i = 0; i < stack.n; i++)
			n_frames += stack.rows[i].n;
		assert_int_equal(n_frames, n);
		torsh_folded_stack_free(&stack);
	}
}

static void functions_are_short(void **state)
{
	static const char *const expected[][2] = {
		{"copy_history", "copy_history"},
		{"operator new(unsigned long)", "operator new"},
		{"operator new[](unsigned long, std::nothrow_t const&)", "operator new[]"},
		{"c10::FunctionSchema::FunctionSchema(c10::FunctionSchema const&)",
		 "c10::FunctionSchema::FunctionSchema"},
		{"c10::FunctionSchema pybind11::detail::function_ref<c10::FunctionSchema (std::string "
		 "const&)>::callback_fn<torch::jit::init(_object*)::{lambda(int)#1}>(long, int)",
		 "pybind11::detail::function_ref<…>::callback_fn<…>"},
		{"std::pair<int, bool> std::map<int, std::less<int> >::insert<int>(int&&)",
		 "std::map<…>::insert<…>"},
		{"torch::jit::init(_object*)::{lambda(int, char)#1}::_FUN(int)",
		 "torch::jit::init::{lambda#1}::_FUN"},
		{"(anonymous namespace)::Parser::add(llvm::Option*)",
		 "(anonymous namespace)::Parser::add"},
		{"at::Tensor::size() const", "at::Tensor::size"},
		{"f(int) [clone .cold]", "f"},
		{"my::Less::operator()(int, int) const", "my::Less::operator()"},
		{"bool std::operator< <char>(std::string const&)", "std::operator<<…>"},
		{"std::ostream& std::operator<<(std::ostream&, int)", "std::operator<<"},
		{"my::Handle::operator bool() const", "my::Handle::operator bool"},
		{"Iterator::operator->()", "Iterator::operator->"},
		{"std::string my::name[abi:cxx11](int)", "my::name"},
		{"<alloc::vec::Vec<T> as core::iter::FromIterator>::from_iter", "<…>::from_iter"},
		{"my_operator<int>(int)", "my_operator<…>"},
		{"f<(a)1>()", "f<…>"},
		{"broken<int", "broken<…>"},
		{"((", "(("},
		{"", ""},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(expected); i++) {
		char *name = torsh_short_function(expected[i][0]);

		assert_string_equal(name, expected[i][1]);
		free(name);
	}
}

static void places_are_relative_to_the_directory_or_the_package(void **state)
{
	static const struct {
		struct frame frame;
		const char *place;
	} expected[] = {
		{PYTHON(DIRECTORY "/train.py", 30, "main"), "train.py:30"},
		{PYTHON(DIRECTORY "er/train.py", 30, "main"), DIRECTORY "er/train.py:30"},
		{PYTHON(PACKAGES "torch/_ops.py", 1318, "f"), "torch/_ops.py:1318"},
		{PYTHON(STANDARD "json/encoder.py", 257, "f"), "json/encoder.py:257"},
		{PYTHON("<string>", 1, "f"), "<string>:1"},
		{PYTHON("/srv/a.py", 0, "f"), "/srv/a.py"},
		{PYTHON(NULL, 0, "f"), "?"},
		{SOURCE(LIBPYTHON, "f", "./Include/call.h", 9), "Include/call.h:9"},
		{NATIVE(LIBTORCH, "f"), "libtorch_cpu.so"},
		{{.module = LIBTORCH, .module_offset = 0x1234}, "libtorch_cpu.so+0x1234"},
		{{.address = 0x10}, "0x10"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(expected); i++) {
		char *place = torsh_short_place(&expected[i].frame, DIRECTORY);

		assert_string_equal(place, expected[i].place);
		free(place);
	}
}

static void packages_have_the_name_that_was_imported(void **state)
{
	static const struct {
		struct frame frame;
		const char *name;
	} expected[] = {
		{PYTHON(PACKAGES "torch/nn/functional.py", 1, "f"), "torch"},
		{PYTHON(PACKAGES "six.py", 1, "f"), "six"},
		{PYTHON(STANDARD "json/__init__.py", 1, "f"), "json"},
		{NATIVE(STANDARD "lib-dynload/_json.cpython-311.so", "f"), "_json"},
		{NATIVE(PACKAGES "numpy.libs/libopenblas.so", "f"), "numpy"},
		{PYTHON(DIRECTORY "/train.py", 1, "f"), ""},
		{NATIVE("/usr/lib/libsqlite3.so", "f"), ""},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(expected); i++) {
		char name[16];

		assert_int_equal(torsh_frame_package(&expected[i].frame, name, sizeof(name)),
				 *expected[i].name != '\0');
		assert_string_equal(name, expected[i].name);
	}
}

static bool are_one_entry(const struct frame *a, size_t n_a, const struct frame *b, size_t n_b)
{
	char *one = torsh_stack_key(all(a, n_a), n_a, DIRECTORY, true);
	char *other = torsh_stack_key(all(b, n_b), n_b, DIRECTORY, true);
	bool is_one = strcmp(one, other) == 0;

	free(one);
	free(other);
	return is_one;
}

#define ARE_ONE(a, b) are_one_entry((a), COUNT(a), (b), COUNT(b))
#define MAIN PYTHON(DIRECTORY "/train.py", 30, "main")
#define MODULE PYTHON(DIRECTORY "/train.py", 35, "<module>")
#define COPY SOURCE(OWN_LIBRARY, "copy_history", "leaky.c", 24)

static void a_recursion_is_one_entry_however_deep_it_is(void **state)
{
	static const struct frame again = PYTHON(DIRECTORY "/train.py", 7, "walk");
	static const struct frame at_leaf = PYTHON(DIRECTORY "/train.py", 9, "walk");
	const struct frame once[] = {at_leaf, again, MAIN, MODULE};
	const struct frame often[] = {at_leaf, again, again, IMPORT, again, MAIN, MODULE};
	const struct frame never[] = {at_leaf, MAIN, MODULE};

	(void)state;
	assert_true(ARE_ONE(once, often));
	assert_false(ARE_ONE(once, never));
}

static void a_specialised_call_is_the_same_entry(void **state)
{
	static const struct frame plain[] = {COPY, NATIVE(LIBPYTHON, "PyObject_Vectorcall"), MAIN,
					     MODULE};
	static const struct frame special[] = {COPY, MAIN, MODULE};
	static const struct frame through[] = {
		COPY, MAIN, PYTHON(PACKAGES "torch/utils.py", 3, "wrapper"), MODULE};

	(void)state;
	assert_true(ARE_ONE(plain, special));
	assert_true(ARE_ONE(through, special));
}

static void other_lines_callers_and_callees_are_other_entries(void **state)
{
	static const struct frame base[] = {COPY, MAIN, MODULE};
	static const struct frame line[] = {SOURCE(OWN_LIBRARY, "copy_history", "leaky.c", 25),
					    MAIN, MODULE};
	static const struct frame caller[] = {COPY, PYTHON(DIRECTORY "/train.py", 40, "test"),
					      MODULE};
	static const struct frame callee[] = {NATIVE(LIBTORCH, "at::empty"), COPY, MAIN, MODULE};
	static const struct frame shorter[] = {COPY, MAIN};

	(void)state;
	assert_false(ARE_ONE(base, line));
	assert_false(ARE_ONE(base, caller));
	assert_false(ARE_ONE(base, callee));
	assert_false(ARE_ONE(base, shorter));
}

static void a_key_without_lines_has_no_lines(void **state)
{
	static const struct frame a[] = {COPY, MAIN};
	static const struct frame b[] = {SOURCE(OWN_LIBRARY, "copy_history", "leaky.c", 99), MAIN};
	char *one = torsh_stack_key(ALL(a), DIRECTORY, false);
	char *other = torsh_stack_key(ALL(b), DIRECTORY, false);

	(void)state;
	assert_string_equal(one, other);
	free(one);
	free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(python_is_sorted_by_its_path),
		cmocka_unit_test(native_code_is_sorted_by_module_source_and_name),
		cmocka_unit_test(the_users_python_line_is_to_blame_and_own_c_is_marked),
		cmocka_unit_test(libraries_and_imports_are_not_to_blame),
		cmocka_unit_test(without_own_code_the_best_of_the_rest_is_to_blame),
		cmocka_unit_test(runs_of_plumbing_are_one_row),
		cmocka_unit_test(a_long_stack_has_its_own_frames_and_the_innermost),
		cmocka_unit_test(every_length_is_folded_within_the_limit),
		cmocka_unit_test(functions_are_short),
		cmocka_unit_test(places_are_relative_to_the_directory_or_the_package),
		cmocka_unit_test(packages_have_the_name_that_was_imported),
		cmocka_unit_test(a_recursion_is_one_entry_however_deep_it_is),
		cmocka_unit_test(a_specialised_call_is_the_same_entry),
		cmocka_unit_test(other_lines_callers_and_callees_are_other_entries),
		cmocka_unit_test(a_key_without_lines_has_no_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
