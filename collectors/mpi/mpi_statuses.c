/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Statuses, which say what a receive got: the program's, or the agent's own if it wants none. */
#include "collectors/mpi/mpi_calls.h"

void torsh_mpi_want_statuses(struct mpi_hook *hook, const struct mpi_call_now *now, uint32_t n)
{
	const struct mpi_layout *at = &now->call->at;

	if (n > MPI_HOOK_STATUSES || !torsh_mpi_ignores_status(now->arguments, at))
		return;
	now->arguments->at[at->status - 1] = (uintptr_t)hook->statuses;
	hook->has_statuses = true;
}

const void *torsh_mpi_status_of(const struct mpi_hook *hook, const struct mpi_call_now *now,
				uint32_t i)
{
	const struct mpi_layout *at = &now->call->at;

	if (!at->status || (!hook->has_statuses && torsh_mpi_ignores_status(now->arguments, at)))
		return NULL;
	return (const uint8_t *)torsh_mpi_argument(now->arguments, at->status) +
	       (uintptr_t)i * torsh_mpi.status_bytes;
}
