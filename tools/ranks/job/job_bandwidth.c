/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Bytes on the bus by collective and size, as nccl-tests define them (doc/PERFORMANCE.md): what
 * each rank's link has to carry. The time is from when the last rank entered until the first one
 * left.
 */
#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/ranks/job/job.h"

/* Begins of names by torch.distributed and by MPI, and how often the other ranks' part passes. */
static const struct {
	const char *name;
	double times;
} collectives[] = {
	{"allreduce", 2},	   {"allgather", 1},	       {"_allgather", 1},
	{"reduce_scatter", 1},	   {"_reduce_scatter", 1},     {"alltoall", 1},
	{"MPI_Allreduce", 2},	   {"MPI_Iallreduce", 2},      {"MPI_Allgather", 1},
	{"MPI_Iallgather", 1},	   {"MPI_Alltoall", 1},	       {"MPI_Ialltoall", 1},
	{"MPI_Reduce_scatter", 1}, {"MPI_Ireduce_scatter", 1},
};

static double bus_factor(const char *name, size_t n)
{
	double ranks = (double)n;

	for (size_t i = 0; i < sizeof(collectives) / sizeof(*collectives); i++) {
		if (strncmp(name, collectives[i].name, strlen(collectives[i].name)) == 0)
			return collectives[i].times * (ranks - 1) / ranks;
	}
	return 1;
}

static struct job_bandwidth *find_row(struct job *job, struct hash_map *rows, size_t *room,
				      const struct job_call *call)
{
	const uint32_t key[] = {call->group, call->name,
				call->bytes ? 64u - (uint32_t)__builtin_clzll(call->bytes) : 0};
	size_t i = torsh_hash_map_put(rows, key, sizeof(key), job->n_bandwidths)->value;

	if (i == job->n_bandwidths) {
		job->bandwidths =
			torsh_array_reserve(job->bandwidths, i, room, sizeof(*job->bandwidths));
		job->bandwidths[job->n_bandwidths++] = (struct job_bandwidth){
			.group = call->group, .name = call->name, .size_class = key[2]};
	}
	return &job->bandwidths[i];
}

void torsh_job_measure_bandwidth(struct job *job)
{
	struct hash_map rows = {0};
	size_t room = 0;

	for (size_t i = 0; i < job->n_verdicts; i++) {
		const struct job_verdict *verdict = &job->verdicts[i];
		const struct job_call *call = &job->calls[verdict->call];
		struct job_bandwidth *row;
		double bytes;

		if (!verdict->transfer_ns || !call->bytes)
			continue;
		row = find_row(job, &rows, &room, call);
		bytes = (double)call->bytes * bus_factor(job->texts[call->name], call->n);
		row->calls++;
		row->bytes += (uint64_t)bytes;
		row->transfer_ns += verdict->transfer_ns;
		if (bytes * 1e9 / (double)verdict->transfer_ns > row->best)
			row->best = bytes * 1e9 / (double)verdict->transfer_ns;
	}
	torsh_hash_map_free(&rows);
}
