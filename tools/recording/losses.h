/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a recording lacks, by cause, and whether its figures can be believed: produced = delivered +
 * dropped is worked out here of what the agent and the writer counted. What doesn't add up is a
 * loss of its own, with no cause.
 */
#ifndef TORSH_RECORDING_LOSSES_H
#define TORSH_RECORDING_LOSSES_H

#include "tools/recording/recording.h"

struct loss {
	/* the recording's; text is a plural that a number can interpose */
	const char *cause, *text;
	bool is_of_events; /* they are among those dropped */
	uint64_t count;
};

struct losses {
	uint64_t produced, delivered, dropped, uncommitted;
	struct loss *items; /* the most first, those of events before the others */
	size_t n, n_room;
};

/* Sum them over the processes; to be freed by the caller. */
void torsh_losses_sum(struct losses *losses, struct recorded_process *const *processes, size_t n);
void torsh_losses_free(struct losses *losses);

/*
 * May a report state that these processes have no leaks, where none was found: the heap of each was
 * recorded, and nothing was lost but what is still to come?
 */
bool torsh_losses_heap_is_whole(const struct recording *recording,
				struct recorded_process *const *processes, size_t n);

/* "12 events that ...", "1 event that ...": the caller's to free. */
char *torsh_losses_words(const struct loss *loss);

/*
 * Is nothing missing: all processes were recorded to their end, nothing was lost, and all of the
 * file can be read? A recording that is being written, or a snapshot, is not whole.
 */
bool torsh_losses_is_whole(const struct recording *recording);

/*
 * The sentence that every report of these processes begins with where something is missing: the
 * caller's to free. NULL: nothing is, or all that is missing is what comes later.
 */
char *torsh_losses_sentence(const struct recording *recording,
			    struct recorded_process *const *processes, size_t n);

#endif
