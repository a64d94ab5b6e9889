/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * tools/command/ has a file for each subcommand of torsh: cmd_NAME.c parses the arguments, calls
 * the analysis and prints the report; those in session/ start, query or end a session. This is
 * their table; an underscore is a hyphen to users. Each gets its own argument vector, argv[0]
 * "torsh NAME", and returns the exit status.
 */
#ifndef TORSH_COMMAND_COMMAND_H
#define TORSH_COMMAND_COMMAND_H

/* COMMAND(name, description) */
#define TORSH_COMMANDS                                                           \
	COMMAND(run, "run a program under the agent")                            \
	COMMAND(report, "overview of a recording on one screen")                 \
	COMMAND(open, "which commands show most of a recording")                 \
	COMMAND(brief, "what costs and what to try, in 6 KiB of Markdown")       \
	COMMAND(validate, "which claims of a brief held after a change")         \
	COMMAND(leaks, "blocks that were not freed")                             \
	COMMAND(peak, "who held memory when most was in use")                    \
	COMMAND(rss, "who owned the resident memory, page by page")              \
	COMMAND(cpu, "where threads spent their time, and what they waited for") \
	COMMAND(ops, "time, memory and FLOPs of PyTorch's operators")            \
	COMMAND(blas, "calls of BLAS and LAPACK, with sizes and FLOPs")          \
	COMMAND(requests, "requests and tasks: time, CPU, memory, what stays")   \
	COMMAND(steps, "how long each step of a training took")                  \
	COMMAND(modules, "time, memory and FLOPs of nn.Modules")                 \
	COMMAND(kernels, "what devices did, and for which operators")            \
	COMMAND(tensors, "who held tensors when most memory was theirs")         \
	COMMAND(whatif, "what it would reserve with another batch or device")    \
	COMMAND(regions, "the program's own ranges and marks, by name")          \
	COMMAND(html, "write the whole recording as a page for a browser")       \
	COMMAND(serve, "show it in a browser, which requests what it shows")     \
	COMMAND(mcp, "serve recordings to a coding assistant")                   \
	COMMAND(export, "write stacks or the timeline for other programs")       \
	COMMAND(diff, "what changed between two recordings, or sets of them")    \
	COMMAND(ranks, "which rank of a job makes the others wait, and why")     \
	COMMAND(fold, "a recording's ranks as a small file that merges")         \
	COMMAND(merge, "folds of ranks as one, in any order or tree")            \
	COMMAND(merge_trace, "one timeline of several ranks of a job")           \
	COMMAND(workloads, "profile small models, and compare their variants")   \
	COMMAND(check, "compare a recording with budgets: for CI")               \
	COMMAND(list, "sessions that are being recorded on this machine")        \
	COMMAND(snapshot, "what a running session holds now, as a recording")    \
	COMMAND(keep, "a copy of a running session, beside its recording")       \
	COMMAND(top, "what running sessions hold, as it changes")                \
	COMMAND(pause, "pause the recording of a running session")               \
	COMMAND(resume, "resume it; `torsh start` begins a dormant program's")   \
	COMMAND(stop, "end it until `torsh start`, of a dormant program")        \
	COMMAND(end, "end the recording of a running session for good")          \
	COMMAND(dump, "everything in a recording, a JSON object a line")

#define COMMAND(name, text) int torsh_command_##name(int argc, char **argv);
TORSH_COMMANDS
#undef COMMAND

/* ALIAS(former name, command): accepted, not listed */
#define TORSH_COMMAND_ALIASES ALIAS(start, resume)

/* torsh finish: run by the writer when a session ends, not listed. */
int torsh_command_finish(int argc, char **argv);

#endif
