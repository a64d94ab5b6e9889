#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What malloc and its kin answer with TORSH_PROFILER_ALLOCATOR=jemalloc is what the C library's answer."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403

TEXT = r"""
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *volatile p;
static volatile size_t huge = (size_t)PTRDIFF_MAX + 1, all = SIZE_MAX;

#define TRY(what) (errno = 0, p = (what), printf("%-40s %s %d\n", #what, p ? "block" : "NULL", errno))
#define KEEPS_ERRNO(what) (errno = 77, what, printf("%-40s errno %d\n", #what, errno))

static void try_alignments(void)
{
	for (size_t a = 0; a <= 1 << 20; a = a < 40 ? a + 1 : a * 2 - 1) {
		size_t rounded = 1;

		while (rounded < a)
			rounded *= 2;
		p = memalign(a, 100);
		if (!p || (uintptr_t)p % rounded || (uintptr_t)p % 16)
			printf("memalign of %zu\n", a);
	}
	for (size_t n = 0; n < 3000; n++) {
		if ((uintptr_t)malloc(n) % 16 || (uintptr_t)calloc(1, n) % 16 || (uintptr_t)calloc(n, 1) % 16 ||
		    (n && (uintptr_t)realloc(malloc(100), n) % 16))
			printf("%zu bytes aren't aligned\n", n);
	}
}

static void try_posix_memalign(size_t alignment, size_t n)
{
	void *out = &out;
	int error = posix_memalign(&out, alignment, n);

	printf("posix_memalign %zu %zu: %d, out is %s\n", alignment, n, error, out == &out ? "kept" : "set");
}

int main(void)
{
	TRY(malloc(huge)), TRY(malloc(all)), TRY(malloc(PTRDIFF_MAX)), TRY(malloc(0));
	TRY(calloc(all / 2, 3)), TRY(calloc(1, huge)), TRY(calloc(0, 0)), TRY(calloc(0, all)), TRY(calloc(all, 0));
	TRY(realloc(malloc(10), huge)), TRY(realloc(NULL, huge)), TRY(realloc(malloc(10), 0)), TRY(realloc(NULL, 0));
	TRY(reallocarray(NULL, all / 2, 3)), TRY(reallocarray(malloc(8), 0, 5)), TRY(reallocarray(NULL, 2, 3));
	TRY(memalign(huge + 1, 10)), TRY(memalign(64, all)), TRY(memalign((size_t)1 << 62, 10));
	TRY(aligned_alloc(64, 100)), TRY(aligned_alloc(1, 10)), TRY(aligned_alloc(64, all));
	TRY(valloc(all)), TRY(valloc(0)), TRY(pvalloc(0)), TRY(pvalloc(1)), TRY(pvalloc(all)), TRY(pvalloc(all - 100));
	try_posix_memalign(6, 100), try_posix_memalign(0, 10), try_posix_memalign(4, 10), try_posix_memalign(64, all);
	try_posix_memalign(64, 0), try_posix_memalign(huge, 10);
	try_alignments();
	KEEPS_ERRNO(free(malloc(10))), KEEPS_ERRNO(free(malloc(10000000))), KEEPS_ERRNO(p = malloc(10));
	KEEPS_ERRNO(p = realloc(malloc(10), 1000)), KEEPS_ERRNO(free(memalign(4096, 10)));
	p = memset(malloc(100), 7, 100);
	p = realloc(p, 50);
	printf("%d %d\n", ((char *)p)[0], ((char *)p)[49]);
	printf("%zu %d\n", malloc_usable_size(NULL), malloc_usable_size(malloc(20)) >= 20);
	return 0;
}
"""


@case
def jemalloc_answers_as_the_c_library():
    source = scratch("program") / "answers.c"
    source.write_text(TEXT)
    built = run(["gcc", "-fno-builtin", "-w", "-o", source.with_suffix(""), source])
    expect_equal(built.returncode, 0, built.stderr.decode())
    bare = run([source.with_suffix("")])
    result, _ = record([source.with_suffix("")], env={"TORSH_PROFILER_ALLOCATOR": "jemalloc"})
    expect_equal((result.returncode, result.stderr), (bare.returncode, bare.stderr), "status and stderr")
    expect_equal(result.stdout.decode().splitlines(), bare.stdout.decode().splitlines(), "answers")


main()
