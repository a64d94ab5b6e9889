/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 *	shared_maps FILE
 *
 * Memory that is shared, mapped in each way by a function of its own, and calls that fail. Prints
 * what each call returned, and its errno; addresses as "mapped". What is left of each function's
 * mappings is in test/e2e/heap/shared_maps.py; the last is so large that most is mapped then.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#define MIB (1u << 20)

static void say(const char *what, long result)
{
	int error = errno;

	printf("%s %s %d\n", what, result == -1 ? "failed" : result ? "mapped" : "0", error);
	errno = 0;
}

static int make_segment(size_t n)
{
	int id = shmget(IPC_PRIVATE, n, IPC_CREAT | 0600);

	if (id < 0)
		abort();
	return id;
}

static char *attach(int id, const void *at, int flags)
{
	char *p = shmat(id, at, flags);

	say("shmat", (long)p);
	return p;
}

/* 3 MiB and a byte are rounded up to pages. */
static void attach_segment(void)
{
	int id = make_segment(3 * MIB + 1);

	strcpy(attach(id, NULL, 0), "kept");
	shmctl(id, IPC_RMID, NULL);
}

static void attach_twice(void)
{
	int id = make_segment(2 * MIB);
	char *first = attach(id, NULL, 0), *second = attach(id, NULL, SHM_RDONLY);

	strcpy(first, "both see it");
	if (strcmp(second, "both see it") != 0)
		abort();
	shmctl(id, IPC_RMID, NULL);
	say("shmdt", shmdt(first));
}

/* What is mapped in place of a part of a segment stays when that is detached. */
static void attach_and_cover(void)
{
	int id = make_segment(4 * MIB);
	char *p = attach(id, NULL, 0);

	shmctl(id, IPC_RMID, NULL);
	if (mmap(p + MIB, MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
	    p + MIB)
		abort();
	if (munmap(p + 3 * MIB, MIB))
		abort();
	say("shmdt", shmdt(p));
}

/* SHM_REMAP takes the place of what is there. */
static void attach_over(void)
{
	int id = make_segment(MIB);
	char *p = mmap(NULL, 5 * MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (attach(id, p + MIB, SHM_REMAP) != p + MIB)
		abort();
	shmctl(id, IPC_RMID, NULL);
}

static void attach_in_vain(void)
{
	int id = make_segment(MIB);

	attach(-1, NULL, 0);
	attach(id, (void *)1, 0);
	shmctl(id, IPC_RMID, NULL);
	attach(id, NULL, 0);
	say("shmdt", shmdt(NULL));
	say("shmdt", shmdt((void *)4096));
	say("shmdt", shmdt("no segment"));
}

static void map_memfd(void)
{
	int fd = memfd_create("weights", MFD_CLOEXEC);

	if (ftruncate(fd, 6 * MIB))
		abort();
	say("mmap", (long)mmap(NULL, 6 * MIB, PROT_READ, MAP_SHARED, fd, 0));
	close(fd);
}

static int make_file(const char *path, size_t n)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);

	if (fd < 0 || ftruncate(fd, (off_t)n))
		abort();
	return fd;
}

static void map_shared_file(const char *path)
{
	int fd = make_file(path, 7 * MIB);

	say("mmap", (long)mmap(NULL, 7 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	close(fd);
}

static void map_private_file(const char *path)
{
	int fd = make_file(path, 7 * MIB);

	say("mmap", (long)mmap(NULL, 5 * MIB, PROT_READ, MAP_PRIVATE, fd, 0));
	close(fd);
}

static void map_shared_memory(void)
{
	say("mmap", (long)mmap(NULL, 9 * MIB, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
}

static void map_last(void)
{
	say("mmap", (long)mmap(NULL, 256 * MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	errno = 0;
	attach_segment();
	attach_twice();
	attach_and_cover();
	attach_over();
	attach_in_vain();
	map_memfd();
	map_shared_file(argv[1]);
	map_private_file(argv[1]);
	map_shared_memory();
	map_last();
	return 0;
}
