/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The attributed frame of a stack: the address that owns the memory of its blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tools/writer/fold/program/attributed_frame.h"

enum { PROGRAM, LIBC, LIBSTDCXX };
enum { SCRIPT, IMPORTER };

/* Numbers of the addresses below. */
enum { MAIN, INNER, MALLOC, NEW, SOMEWHERE, LINE, OTHER_LINE, IMPORT, CUT };

static struct code_module modules[] = {
	[PROGRAM] = {.path = "/usr/bin/program"},
	[LIBC] = {.path = "/lib/x86_64-linux-gnu/libc.so.6"},
	[LIBSTDCXX] = {.path = "/usr/lib/libstdc++.so.6.0.30"},
};

static struct code_function functions[] = {
	[SCRIPT] = {.name = "f", .file = "script.py"},
	[IMPORTER] = {.name = "_find_and_load", .file = "<frozen importlib._bootstrap>"},
};

static struct code_address addresses[] = {
	[MAIN] = {.ip = 1, .module = PROGRAM},
	[INNER] = {.ip = 2, .module = PROGRAM},
	[MALLOC] = {.ip = 3, .module = LIBC},
	[NEW] = {.ip = 4, .module = LIBSTDCXX},
	[SOMEWHERE] = {.ip = 5, .module = CHANNEL_NO_MODULE},
	[LINE] = {.ip = 6, .flags = ADDRESS_PYTHON, .module = SCRIPT},
	[OTHER_LINE] = {.ip = 7, .flags = ADDRESS_PYTHON, .module = SCRIPT},
	[IMPORT] = {.ip = 8, .flags = ADDRESS_PYTHON, .module = IMPORTER},
	[CUT] = {.flags = ADDRESS_CUT_TOO_DEEP, .module = CHANNEL_NO_MODULE},
};

static const struct code_table code = {
	.addresses = addresses,
	.n_addresses = sizeof(addresses) / sizeof(addresses[0]),
	.modules = modules,
	.functions = functions,
};

/* A path of at most four addresses, outermost first; -1 ends it. */
static uint32_t add_stack(struct stack_table *stacks, const int *path)
{
	uint32_t stack = 0, hash = 0;

	for (int i = 0; i < 4 && path[i] >= 0; i++) {
		hash = torsh_stacks_hash(hash, (uint32_t)path[i]);
		stack = torsh_stacks_push(stacks, stack, (uint32_t)path[i], hash);
	}
	return stack;
}

static void attributed_frames_name_the_owner_best(void **state)
{
	static const struct {
		int path[4];
		uint32_t attributed_frame;
	} cases[] = {
		{{MAIN, INNER, -1}, INNER},
		{{MAIN, MALLOC, -1}, MAIN},
		{{MAIN, INNER, NEW, MALLOC}, INNER},
		{{MALLOC, NEW, -1}, NEW},
		{{MAIN, SOMEWHERE, -1}, MAIN},
		{{SOMEWHERE, MALLOC, -1}, MALLOC},
		{{CUT, INNER, -1}, INNER},
		{{MAIN, LINE, INNER, -1}, LINE},
		{{LINE, OTHER_LINE, MAIN, MALLOC}, OTHER_LINE},
		{{LINE, IMPORT, INNER, -1}, LINE},
		{{MAIN, IMPORT, INNER, -1}, IMPORT},
	};
	struct stack_table stacks;
	struct attributed_frames attributed = {0};
	struct attributed_frame frame;

	(void)state;
	torsh_stacks_create(&stacks);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t stack = add_stack(&stacks, cases[i].path);

		/* As the table grows. */
		torsh_attributed_frames_update(&attributed, &code, &stacks);
		frame = torsh_attributed_frames_of(&attributed, &stacks, stack);
		assert_true(frame.rank);
		assert_int_equal(frame.address, cases[i].attributed_frame);
	}
	assert_int_equal(torsh_attributed_frames_of(&attributed, &stacks, 0).rank, 0);
	torsh_attributed_frames_destroy(&attributed);
	torsh_stacks_destroy(&stacks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attributed_frames_name_the_owner_best),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
