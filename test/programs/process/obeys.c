/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Obeys commands: each letter on stdin is executed, and then a '.' is printed to stdout. See
 * test/lib/live_targets.py.
 *
 *	a b c	keep N_BLOCKS more blocks of FIRST_BYTES, SECOND_BYTES, THIRD_BYTES
 *	f g	free FREED of the blocks of a, of b
 *	r s	resize the last block of a, of b to RESIZED_BYTES
 *	m M	begin to allocate and free in THREADS threads; end that
 *	x e	a child, by fork alone and with exec, keeps N_BLOCKS blocks of CHILD_BYTES and ends
 *
 * Its end is that of stdin.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_BLOCKS 10
#define FREED 4
#define BLOCKS_MAX 1000
#define FIRST_BYTES 1001
#define SECOND_BYTES 2003
#define THIRD_BYTES 3001
#define CHILD_BYTES 4001
#define RESIZED_BYTES 5003
#define THREADS 4
#define CHURNED 64

struct kept {
	void *blocks[BLOCKS_MAX];
	int n;
};

static struct kept first, second, third, in_child;
static atomic_int must_churn;
static pthread_t threads[THREADS];

static void keep_first(void)
{
	for (int i = 0; i < N_BLOCKS; i++)
		first.blocks[first.n++] = malloc(FIRST_BYTES);
}

static void keep_second(void)
{
	for (int i = 0; i < N_BLOCKS; i++)
		second.blocks[second.n++] = malloc(SECOND_BYTES);
}

static void keep_third(void)
{
	for (int i = 0; i < N_BLOCKS; i++)
		third.blocks[third.n++] = malloc(THIRD_BYTES);
}

static void keep_in_child(void)
{
	for (int i = 0; i < N_BLOCKS; i++)
		in_child.blocks[in_child.n++] = malloc(CHILD_BYTES);
}

static void free_some(struct kept *kept)
{
	for (int i = 0; i < FREED; i++) {
		free(kept->blocks[i]);
		kept->blocks[i] = NULL;
	}
}

static void resize_last(struct kept *kept)
{
	kept->blocks[kept->n - 1] = realloc(kept->blocks[kept->n - 1], RESIZED_BYTES);
}

static void *churn(void *number)
{
	uint64_t random = (uintptr_t)number + 1;
	void *blocks[CHURNED] = {0};

	while (atomic_load(&must_churn)) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		free(blocks[random >> 58]);
		blocks[random >> 58] = malloc(random >> 32 & 1023);
	}
	for (int i = 0; i < CHURNED; i++)
		free(blocks[i]);
	return NULL;
}

static void begin_churning(void)
{
	atomic_store(&must_churn, 1);
	for (uintptr_t i = 0; i < THREADS; i++) {
		if (pthread_create(&threads[i], NULL, churn, (void *)i))
			abort();
	}
}

static void end_churning(void)
{
	atomic_store(&must_churn, 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void start_child(const char *program)
{
	pid_t child = fork();

	if (child == 0 && program) {
		execl(program, program, "child", NULL);
		_exit(1);
	}
	if (child == 0) {
		keep_in_child();
		_exit(0);
	}
	if (child < 0 || waitpid(child, NULL, 0) != child)
		abort();
}

static void obey(char letter, const char *program)
{
	switch (letter) {
	case 'a':
		keep_first();
		break;
	case 'b':
		keep_second();
		break;
	case 'c':
		keep_third();
		break;
	case 'f':
		free_some(&first);
		break;
	case 'g':
		free_some(&second);
		break;
	case 'r':
		resize_last(&first);
		break;
	case 's':
		resize_last(&second);
		break;
	case 'm':
		begin_churning();
		break;
	case 'M':
		end_churning();
		break;
	case 'x':
		start_child(NULL);
		break;
	case 'e':
		start_child(program);
		break;
	default:
		abort();
	}
}

int main(int argc, char **argv)
{
	char letter;

	if (argc > 1 && !strcmp(argv[1], "child")) {
		keep_in_child();
		return 0;
	}
	while (read(STDIN_FILENO, &letter, 1) == 1) {
		obey(letter, argv[0]);
		if (write(STDOUT_FILENO, ".", 1) != 1)
			return 1;
	}
	return 0;
}
