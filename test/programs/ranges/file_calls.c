/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * file_calls FOLDER  Writes files of its session by torsh.h into FOLDER, which is its working
 * directory: snapshots from eight threads, an export, what leaked since a mark, and the same of a
 * forked child. Prints the results of calls, and the bytes that it lost.
 * test/e2e/ranges/memory_calls.py has them.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/ranges/torsh.h"

#define N_THREADS 8
#define N_LOST 5

static void *volatile lost;
static char said[4096];

/* Collected, because printing may allocate. */
#define SAY(...) snprintf(said + strlen(said), sizeof(said) - strlen(said), __VA_ARGS__)

__attribute__((noinline)) static size_t lose(size_t bytes, int n)
{
	for (int i = 0; i < n; i++) {
		lost = malloc(bytes);
		free(malloc(bytes));
	}
	return bytes * (size_t)n;
}

static void *take_snapshot(void *number)
{
	char path[32];

	snprintf(path, sizeof(path), "%d.torsh", (int)(intptr_t)number);
	return (void *)(intptr_t)torsh_snapshot(path);
}

static void use_threads(void)
{
	pthread_t threads[N_THREADS];
	int n_failed = 0;

	for (int i = 0; i < N_THREADS; i++)
		pthread_create(&threads[i], NULL, take_snapshot, (void *)(intptr_t)i);
	for (int i = 0; i < N_THREADS; i++) {
		void *result;

		pthread_join(threads[i], &result);
		n_failed += result != NULL;
	}
	SAY("threads failed %d\n", n_failed);
}

static void use_children(void)
{
	volatile int result = 1;
	int status = -1;
	pid_t child = fork();

	if (!child) {
		torsh_mark("child");
		lose(333, 1);
		_exit(-torsh_leaks_since("child", "child.json"));
	}
	waitpid(child, &status, 0);
	SAY("fork %d\n", WEXITSTATUS(status));
	child = vfork();
	if (!child) {
		result = torsh_snapshot("vfork.torsh");
		_exit(0);
	}
	waitpid(child, NULL, 0);
	SAY("vfork %d\n", result);
}

static void use_variables(void)
{
	int set = torsh_configure("with_stack", "0"), wrong = torsh_configure("with stack", "1");
	const char *value = getenv("TORSH_PROFILER_WITH_STACK");

	SAY("configure %d %d %s", set, wrong, value ? value : "-");
	set = torsh_configure("with_stack", NULL);
	value = getenv("TORSH_PROFILER_WITH_STACK");
	SAY(" %d %s\n", set, value ? value : "-");
}

int main(int argc, char **argv)
{
	static char long_text[5000];
	size_t bytes;

	if (argc < 2 || chdir(argv[1]))
		return 2;
	lose(77, 1);
	torsh_mark("here");
	bytes = lose(1000, N_LOST);
	SAY("leaks %d\n", torsh_leaks_since("here", "leaks.json"));
	SAY("export %d\n", torsh_export("folded", "now.folded"));
	SAY("refused %d %d %d %d\n", torsh_leaks_since("never", "never.json"),
	    torsh_export("nothing", "nothing"), torsh_snapshot("no/such/folder"),
	    torsh_snapshot(""));
	memset(long_text, 'x', sizeof(long_text) - 1);
	SAY("too long %d %d\n", torsh_snapshot(long_text), torsh_leaks_since(long_text, "long"));
	use_threads();
	use_children();
	use_variables();
	SAY("lost %zu\n", bytes);
	fputs(said, stdout);
	return 0;
}
