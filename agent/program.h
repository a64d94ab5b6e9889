/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Programs that a process is about to run, looked at beforehand: some can't be preloaded, and a report that misses
 * them must say so.
 */
#ifndef TORSH_AGENT_PROGRAM_H
#define TORSH_AGENT_PROGRAM_H

struct text;

/*
 * Why the program at path (searched along PATH when it holds no slash) will not be recorded: a sentence into problem,
 * which stays empty when it will, or can't be looked at. Plain system calls; errno is kept.
 */
void torsh_program_inspect(const char *path, struct text *problem);

#endif
