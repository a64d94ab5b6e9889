#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Forks where others don't expect them: in a signal handler that interrupted a fork, or an allocation."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from harness import *  # noqa: E402,F403

N_HANDLED = 300


def fork_in_handlers(settings):
    command = [PROGRAMS / "forks", N_HANDLED]
    expect_equal(run(command).returncode, 0, "status without the agent")
    result, output = record(command, env=settings)
    expect_equal(result.returncode, 0, f"status (stderr: {result.stderr.decode(errors='replace')})")
    expect_equal(bool(recordings(output)), "TORSH_PROFILER_ENABLED" not in settings, "a recording")


add_case("a_handler_forks_in_a_fork", fork_in_handlers, {})
add_case("a_handler_forks_in_a_fork_beside_an_inert_agent", fork_in_handlers, {"TORSH_PROFILER_ENABLED": "0"})
add_case("a_handler_forks_in_a_fork_with_our_jemalloc", fork_in_handlers, {"TORSH_PROFILER_ALLOCATOR": "jemalloc"})

# Forks, reads with new buffers, and flushes of all streams, all at once: each takes locks that the others want.
STREAMS = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#define N_FORKERS 3
#define N_READERS 4
static _Atomic int is_over;
static const char *path;
static void *fork_on(void *unused)
{
	for (int i = 0; i < 150; i++) {
		int status;
		pid_t child = fork();

		if (child == 0) {
			free(malloc(1000));
			printf("%s", "");
			_exit(17);
		}
		if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 17)
			abort();
	}
	return unused;
}
static void *read_on(void *unused)
{
	while (!is_over) {
		FILE *file = fopen(path, "r");
		char *line = NULL;
		size_t room = 0;

		if (!file || getline(&line, &room, file) < 50000)
			abort();
		free(line);
		fclose(file);
	}
	return unused;
}
static void *flush_on(void *unused)
{
	while (!is_over)
		fflush(NULL);
	return unused;
}
int main(int n, char **words)
{
	pthread_t forkers[N_FORKERS], others[N_READERS + 1];

	path = words[1];
	for (int i = 0; i <= N_READERS; i++)
		pthread_create(&others[i], NULL, i ? read_on : flush_on, NULL);
	for (int i = 0; i < N_FORKERS; i++)
		pthread_create(&forkers[i], NULL, fork_on, NULL);
	for (int i = 0; i < N_FORKERS; i++)
		pthread_join(forkers[i], NULL);
	is_over = 1;
	for (int i = 0; i <= N_READERS; i++)
		pthread_join(others[i], NULL);
	if (fork() == 0) { /* of one thread again */
		fflush(NULL);
		exit(printf("child\n") != 6);
	}
	wait(NULL);
	return printf("parent\n") != 7;
}
"""


def fork_beside_streams(settings):
    folder = scratch("program")
    (folder / "program.c").write_text(STREAMS)
    (folder / "line").write_text("x" * 50000 + "\n")
    expect_equal(run(["gcc", "-g", "-O1", "-w", "-pthread", "-o", folder / "program", folder / "program.c"]).returncode, 0, "compiler")
    result, output = record([folder / "program", folder / "line"], scratch("recording"),
                            env=dict(settings, TORSH_PROFILER_FOLLOW="0"))
    expect_equal((result.returncode, result.stdout), (0, b"child\nparent\n"), f"outcome, {result.stderr}")


add_case("threads_fork_beside_streams", fork_beside_streams, {})
add_case("threads_fork_beside_streams_with_our_jemalloc", fork_beside_streams, {"TORSH_PROFILER_ALLOCATOR": "jemalloc"})

main()
