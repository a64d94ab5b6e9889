/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a recording lacks, by cause, and whether its figures are reliable. produced = delivered +
 * dropped is computed here from the counters of the agent and the writer. A difference is a
 * separate loss, without a cause.
 */
#ifndef TORSH_RECORDING_LOSSES_H
#define TORSH_RECORDING_LOSSES_H

#include "tools/recording/recording.h"

struct loss {
	/* owned by the recording; text is a plural phrase that follows a number */
	const char *cause, *text;
	bool is_of_events; /* they are among the dropped events */
	uint64_t count;
};

struct losses {
	uint64_t produced, delivered, dropped, uncommitted;
	struct loss *items; /* sorted: those of events first, and most first */
	size_t n, n_room;
};

/* Sum up the losses over the processes. Free the result with torsh_losses_free. */
void torsh_losses_sum(struct losses *losses, struct recorded_process *const *processes, size_t n);

/* Free the losses. */
void torsh_losses_free(struct losses *losses);

/*
 * Returns true if a report may state that these processes have no leaks when none was found: each
 * heap was recorded, and nothing was lost except what has not happened yet.
 */
bool torsh_losses_heap_is_whole(const struct recording *recording,
				struct recorded_process *const *processes, size_t n);

/* Returns "12 events that ...", "1 event that ..."; the caller frees it. */
char *torsh_losses_words(const struct loss *loss);

/*
 * Returns true if nothing is missing: all processes were recorded to their end, nothing was lost,
 * and the whole file can be read. A snapshot or an unfinished recording is not complete.
 */
bool torsh_losses_is_whole(const struct recording *recording);

/*
 * Returns the first sentence of every report of these processes if something is missing; the
 * caller frees it. NULL: nothing is missing except what has not happened yet.
 */
char *torsh_losses_sentence(const struct recording *recording,
			    struct recorded_process *const *processes, size_t n);

#endif
