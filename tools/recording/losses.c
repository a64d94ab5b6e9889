/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/recording/losses.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/base/size.h"

#define CAUSES_SAID 3u /* causes named in the sentence, each of events and of other things */

static void add(struct losses *losses, const char *cause, const char *text, bool is_of_events,
		uint64_t count)
{
	struct loss *loss = NULL;

	for (size_t i = 0; i < losses->n && !loss; i++) {
		if (losses->items[i].is_of_events == is_of_events &&
		    strcmp(losses->items[i].cause, cause) == 0)
			loss = &losses->items[i];
	}
	if (!loss) {
		losses->items = torsh_array_reserve(losses->items, losses->n, &losses->n_room,
						    sizeof(*loss));
		loss = &losses->items[losses->n++];
		*loss = (struct loss){.cause = cause, .text = text, .is_of_events = is_of_events};
	}
	loss->count += count;
}

/* Adds what the process's own counters don't explain. */
static void add_unexplained(struct losses *losses, const struct recorded_process *process,
			    uint64_t n_explained)
{
	uint64_t delivered_and_dropped = process->delivered + process->dropped;

	if (process->dropped != n_explained)
		add(losses, "unexplained", "events that were lost without a cause", true,
		    process->dropped > n_explained ? process->dropped - n_explained
						   : n_explained - process->dropped);
	if (process->produced != delivered_and_dropped)
		add(losses, "unaccounted", "events that are neither delivered nor dropped", false,
		    process->produced > delivered_and_dropped
			    ? process->produced - delivered_and_dropped
			    : delivered_and_dropped - process->produced);
}

static int compare(const void *a, const void *b)
{
	const struct loss *one = a, *other = b;

	if (one->is_of_events != other->is_of_events)
		return one->is_of_events ? -1 : 1;
	if (one->count != other->count)
		return one->count > other->count ? -1 : 1;
	return strcmp(one->cause, other->cause);
}

void torsh_losses_sum(struct losses *losses, struct recorded_process *const *processes, size_t n)
{
	*losses = (struct losses){0};
	for (size_t i = 0; i < n; i++) {
		const struct recorded_process *process = processes[i];
		uint64_t n_explained = 0;

		losses->produced += process->produced;
		losses->delivered += process->delivered;
		losses->dropped += process->dropped;
		losses->uncommitted += process->uncommitted;
		for (size_t k = 0; k < process->n_losses; k++) {
			const struct recorded_loss *loss = &process->losses[k];

			add(losses, loss->cause, loss->text, loss->is_of_events, loss->count);
			n_explained += loss->is_of_events ? loss->count : 0;
		}
		add_unexplained(losses, process, n_explained);
	}
	if (losses->n)
		qsort(losses->items, losses->n, sizeof(*losses->items), compare);
}

void torsh_losses_free(struct losses *losses)
{
	free(losses->items);
	*losses = (struct losses){0};
}

char *torsh_losses_words(const struct loss *loss)
{
	char number[SIZE_TEXT_BYTES];
	int n_plural = (int)strcspn(loss->text, " ");
	int n = loss->count == 1 && n_plural > 1 && loss->text[n_plural - 1] == 's' ? n_plural - 1
										    : n_plural;

	return torsh_need_text("%s %.*s%s", torsh_size_grouped(loss->count, number), n, loss->text,
			       loss->text + n_plural);
}

/* A running session is incomplete by nature. */
static bool is_going_on(const struct recording *recording)
{
	return recording->is_being_written || recording->snapshot_of;
}

static bool is_readable(const struct recording *recording)
{
	return !recording->is_truncated && !recording->n_bad_rows;
}

static bool is_any_lost(struct recorded_process *const *processes, size_t n)
{
	struct losses losses;
	bool are_there;

	torsh_losses_sum(&losses, processes, n);
	are_there = losses.n;
	torsh_losses_free(&losses);
	return are_there;
}

bool torsh_losses_heap_is_whole(const struct recording *recording,
				struct recorded_process *const *processes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (torsh_recording_heap_problem(processes[i]))
			return false;
	}
	return is_readable(recording) && (recording->is_complete || is_going_on(recording)) &&
	       !is_any_lost(processes, n);
}

bool torsh_losses_is_whole(const struct recording *recording)
{
	return recording->is_complete && is_readable(recording) &&
	       !is_any_lost(recording->processes, recording->n_processes);
}

/* Append the separator and `more` to *text; frees more. */
static void append(char **text, const char *separator, char *more)
{
	char *both = torsh_need_text("%s%s%s", *text ? *text : "", *text ? separator : "", more);

	free(*text);
	free(more);
	*text = both;
}

/*
 * Returns "12 events that ..., 3 events that ...", or NULL if there are none. The caller frees it.
 */
static char *make_list(const struct losses *losses, bool is_of_events)
{
	char *list = NULL;
	size_t n_said = 0, n = 0;

	for (size_t i = 0; i < losses->n; i++) {
		const struct loss *loss = &losses->items[i];

		if (loss->is_of_events != is_of_events || ++n > CAUSES_SAID)
			continue;
		append(&list, ", ", torsh_losses_words(loss));
		n_said++;
	}
	if (n > n_said)
		append(&list, ", ", torsh_need_text("and of %zu more causes", n - n_said));
	return list;
}

static void put_losses(char **sentence, const struct losses *losses)
{
	char dropped[SIZE_TEXT_BYTES], produced[SIZE_TEXT_BYTES];
	char *events = make_list(losses, true), *others = make_list(losses, false);

	if (events)
		append(sentence, "; ",
		       torsh_need_text("%s of %s events were lost (%s)",
				       torsh_size_grouped(losses->dropped, dropped),
				       torsh_size_grouped(losses->produced, produced), events));
	free(events);
	if (others)
		append(sentence, "; ", others);
}

/* Returns the reason, or NULL if the recording is complete. The caller frees it. */
static char *why_incomplete(const struct recording *recording)
{
	char at[SIZE_TEXT_BYTES];
	const char *how =
		recording->ends_with_process_1
			? "the writer was killed (the kernel does that when process 1 of a PID namespace, here the first process, ends)"
			: "the file was cut or the writer was killed";

	if (recording->has_end)
		return torsh_need_text("%s", recording->n_reasons
						     ? recording->reasons[0]
						     : "the writer ended before all processes had");
	if (recording->has_known)
		return torsh_need_text(
			"%s, and nothing is known of what came later than %s after the start", how,
			torsh_size_duration(recording->known_ns, at));
	return torsh_need_text("%s before its first checkpoint", how);
}

char *torsh_losses_sentence(const struct recording *recording,
			    struct recorded_process *const *processes, size_t n)
{
	struct losses losses;
	char *missing = NULL, *sentence;

	torsh_losses_sum(&losses, processes, n);
	put_losses(&missing, &losses);
	torsh_losses_free(&losses);
	if (!recording->is_complete && !is_going_on(recording))
		append(&missing, "; ", why_incomplete(recording));
	if (recording->is_truncated && !is_going_on(recording))
		append(&missing, "; ", torsh_need_text("the file is cut or damaged"));
	if (recording->n_bad_rows)
		append(&missing, "; ",
		       torsh_need_text("%llu rows of the file make no sense",
				       (unsigned long long)recording->n_bad_rows));
	if (!missing)
		return NULL;
	sentence = torsh_need_text("Incomplete: %s. What follows is of the rest.", missing);
	free(missing);
	return sentence;
}
