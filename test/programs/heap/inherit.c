/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Forks with blocks of the parent's, and what they do with them. Between the first fork and the
 * second the parent allocates N_MORE blocks and nothing else, so that their difference does not
 * depend on the C library.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_BLOCKS 20
#define N_MORE 7
#define BLOCK_BYTES 300

static void *blocks[N_BLOCKS + N_MORE];

static void *keep_in_parent(void)
{
	return malloc(BLOCK_BYTES);
}

static void *keep_in_child(void *old, size_t n_bytes)
{
	return realloc(old, n_bytes);
}

/* Keeps all. */
static int keep_all(void)
{
	return 1;
}

/*
 * Frees 5 of the inherited, takes their places and frees these, so that addresses of the parent's
 * are its own.
 */
static int free_some(void)
{
	void *own[5];

	for (int i = 0; i < 5; i++)
		free(blocks[i]);
	for (int i = 0; i < 5; i++)
		own[i] = malloc(BLOCK_BYTES);
	for (int i = 0; i < 5; i++)
		free(own[i]);
	return 2;
}

/*
 * 3 of the inherited become 2 blocks of its own of 1000 bytes, and one that stays as it is: the
 * size can't be had.
 */
static int resize_some(void)
{
	volatile size_t too_much = PTRDIFF_MAX;

	blocks[0] = keep_in_child(blocks[0], 1000);
	blocks[1] = keep_in_child(blocks[1], 1000);
	return keep_in_child(blocks[2], too_much) ? 99 : 3;
}

/* Frees 4 and has a child, which inherits the rest and 2 blocks more. */
static int fork_again(void)
{
	int status;
	pid_t child;

	for (int i = 0; i < 4; i++)
		free(blocks[i]);
	for (int i = 0; i < 2; i++)
		keep_in_child(NULL, 500);
	child = fork();
	if (!child)
		_exit(5);
	return waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 5 ? 4 : 99;
}

static int in_child(int (*live)(void))
{
	int status;
	pid_t child = fork();

	if (!child)
		_exit(live());
	waitpid(child, &status, 0);
	return WEXITSTATUS(status);
}

int main(void)
{
	for (int i = 0; i < N_BLOCKS; i++)
		blocks[i] = keep_in_parent();
	if (in_child(keep_all) != 1)
		return 1;
	for (int i = 0; i < N_MORE; i++)
		blocks[N_BLOCKS + i] = keep_in_parent();
	if (in_child(free_some) != 2 || in_child(resize_some) != 3 || in_child(fork_again) != 4)
		return 2;
	return 0;
}
