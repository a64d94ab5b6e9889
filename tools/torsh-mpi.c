/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * torsh-mpi: torsh merge by the processes of an MPI job. Each reads its share of the folds and
 * recordings and merges them; then merged folds go up a binary tree, to process 0, which writes the
 * result: the same bytes as torsh merge writes.
 *
 *	mpirun -n 64 torsh-mpi DIR... -o job.fold
 */
#include <argp.h>
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/base/die.h"
#include "tools/command/ranks/fold_inputs.h"
#include "tools/ranks/fold/fold_merge.h"

static const char doc[] =
	"Merge folds and recordings of ranks by the processes of an MPI job.\v"
	"Run it under mpirun or srun. Each process reads its share, and merged folds go up a tree. The result is that of torsh "
	"merge, to the byte. Temporary files lie in TMPDIR.";

#define PIECE_BYTES (1 << 30) /* of one message: counts of MPI are ints */
#define TAG 1

static const struct argp_option options[] = {
	{"output", 'o', "FILE", 0, "write it there (job.fold)", 0},
	{0},
};

struct arguments {
	struct fold_inputs inputs;
	const char *output;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	switch (key) {
	case 'o':
		arguments->output = argument;
		return 0;
	case ARGP_KEY_ARG:
		torsh_fold_inputs_add(&arguments->inputs, argument);
		return 0;
	case ARGP_KEY_END:
		if (!arguments->inputs.n)
			argp_error(state, "which folds? Give files or directories");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Send a merged fold, or nothing if path is NULL. */
static void send_fold(const char *path, int to)
{
	struct fold_bytes file = {0};
	char error[512];
	uint64_t n;

	if (path && torsh_fold_map(&file, path, error, sizeof(error)))
		torsh_die("%s", error);
	n = file.n;
	MPI_Send(&n, 1, MPI_UINT64_T, to, TAG, MPI_COMM_WORLD);
	for (uint64_t at = 0; at < n; at += PIECE_BYTES) {
		int n_piece = n - at < PIECE_BYTES ? (int)(n - at) : PIECE_BYTES;

		MPI_Send(file.bytes + at, n_piece, MPI_BYTE, to, TAG, MPI_COMM_WORLD);
	}
	torsh_fold_unmap(&file);
}

/* Receive one into a file. Returns whether there was any. */
static bool receive_fold(const char *path, int from)
{
	uint64_t n;
	uint8_t *bytes;
	FILE *file;

	MPI_Recv(&n, 1, MPI_UINT64_T, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (!n)
		return false;
	bytes = torsh_need(malloc(n));
	for (uint64_t at = 0; at < n; at += PIECE_BYTES) {
		int n_piece = n - at < PIECE_BYTES ? (int)(n - at) : PIECE_BYTES;

		MPI_Recv(bytes + at, n_piece, MPI_BYTE, from, TAG, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	}
	file = fopen(path, "wb");
	if (!file || fwrite(bytes, 1, n, file) != n || fclose(file) != 0)
		torsh_die("can't write %s: %s", path, strerror(errno));
	free(bytes);
	return true;
}

/* ---- the tree -------------------------------------------------------------------------------- */

/* Merge the folds of processes below this one into `own`; returns whether that has any. */
static bool merge_tree(int process, int n_processes, bool has_own, const char *own,
		       const char *received)
{
	for (int apart = 1; apart < n_processes; apart *= 2) {
		const char *const both[] = {own, received};

		if (process % (2 * apart)) {
			send_fold(has_own ? own : NULL, process - apart);
			return false;
		}
		if (process + apart >= n_processes || !receive_fold(received, process + apart))
			continue;
		torsh_fold_merge_files(has_own ? both : both + 1, has_own ? 2 : 1, own);
		has_own = true;
		unlink(received);
	}
	return has_own;
}

static void merge(const struct arguments *arguments, int process, int n_processes)
{
	const char *folder = getenv("TMPDIR"), *output = arguments->output;
	size_t n = arguments->inputs.n, first = n * (size_t)process / (size_t)n_processes,
	       next = n * ((size_t)process + 1) / (size_t)n_processes;
	struct fold_inputs share = {.paths = arguments->inputs.paths + first, .n = next - first};
	char *directory =
		torsh_need_text("%s/torsh-mpi-XXXXXX", folder && *folder ? folder : "/tmp");
	char *own, *received;

	if (!mkdtemp(directory))
		torsh_die("%s can't be made: %s", directory, strerror(errno));
	own = torsh_need_text("%s/own", directory);
	received = torsh_need_text("%s/received", directory);
	if (share.n)
		torsh_fold_inputs_merge(&share, own, 1);
	/* Merging one fold copies it: output may be on another file system. */
	if (merge_tree(process, n_processes, share.n, own, received) && !process)
		torsh_fold_merge_files((const char *const *)&own, 1, output ? output : "job.fold");
	unlink(own);
	rmdir(directory);
	free(received);
	free(own);
	free(directory);
}

int main(int argc, char **argv)
{
	static const struct argp parser = {options, parse, "PATH...", doc, NULL, NULL, NULL};
	struct arguments arguments = {.output = NULL};
	int process, n_processes;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &process);
	MPI_Comm_size(MPI_COMM_WORLD, &n_processes);
	argp_parse(&parser, argc, argv, 0, NULL, &arguments);
	merge(&arguments, process, n_processes);
	torsh_fold_inputs_free(&arguments.inputs);
	MPI_Finalize();
	return TORSH_EXIT_DONE;
}
