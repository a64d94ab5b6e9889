/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Mappings made, cut, covered, moved and grown, each by a function of its own; what is left of each
 * at the end is in test/e2e/heap/maps.py. The last is so large that most is mapped once it is
 * there.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB (1u << 20)

static char *map(size_t n)
{
	char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

static void check(int rc)
{
	if (rc)
		abort();
}

static void map_untouched(void)
{
	map(8 * MIB);
}

static void map_and_unmap(void)
{
	check(munmap(map(8 * MIB), 8 * MIB));
}

static void map_cut_at_start(void)
{
	check(munmap(map(8 * MIB), MIB));
}

static void map_cut_at_end(void)
{
	check(munmap(map(8 * MIB) + 7 * MIB, MIB));
}

static void map_cut_in_the_middle(void)
{
	check(munmap(map(8 * MIB) + 3 * MIB, MIB));
}

static void cover(char *p)
{
	if (mmap(p, MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != p)
		abort();
}

static void map_covered(void)
{
	cover(map(8 * MIB) + 2 * MIB);
}

/* One munmap over two mappings and the gap between them. */
static void map_two_unmapped_as_one(void)
{
	char *p = map(9 * MIB);

	check(munmap(p + 4 * MIB, MIB));
	check(munmap(p + MIB, 7 * MIB));
}

static void shrink(char *p)
{
	if (mremap(p, 8 * MIB, 2 * MIB, 0) != p)
		abort();
}

static void map_shrunk(void)
{
	shrink(map(8 * MIB));
}

static void grow(char *p)
{
	if (mremap(p, 4 * MIB, 16 * MIB, MREMAP_MAYMOVE) == MAP_FAILED)
		abort();
}

static void map_grown(void)
{
	grow(map(4 * MIB));
}

static void map_file(void)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	check(ftruncate(fd, 3 * MIB));
	if (mmap(NULL, 3 * MIB, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
		abort();
	close(fd);
}

static void map_in_vain(void)
{
	size_t too_much = SIZE_MAX / 2;

	if (mmap(NULL, too_much, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		abort();
	if (munmap((void *)1, 4096) != -1)
		abort();
}

static void map_advised(void)
{
	char *p = map(8 * MIB);

	memset(p, 1, 8 * MIB);
	check(madvise(p, 4 * MIB, MADV_DONTNEED));
}

static void map_last(void)
{
	map(256 * MIB);
}

int main(void)
{
	map_untouched();
	map_and_unmap();
	map_cut_at_start();
	map_cut_at_end();
	map_cut_in_the_middle();
	map_covered();
	map_two_unmapped_as_one();
	map_shrunk();
	map_grown();
	map_file();
	map_in_vain();
	map_advised();
	map_last();
	return 0;
}
