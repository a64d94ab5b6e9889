/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Collectives that several ranks in the file had, on tracks of their own below the process: a flow
 * goes through the slices of one collective, in the order in which the ranks entered it.
 */
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/base/containers/hash_map.h"
#include "tools/export/perfetto/perfetto.h"

#define CALL_KEY (UINT64_C(1) << 44) /* above the keys of waits */
/* Beside those of launches and of forward operators. */
#define FLOW_OF_CALL (UINT64_C(1) << 62)

/* Texts of calls by number, and tracks of lanes. */
struct calls_state {
	struct hash_map texts;
	uint64_t *tracks;
	size_t n_tracks;
};

/* Returns the key of a text among those that the sequence makes. */
static uint64_t key_of(struct calls_state *state, const char *text, bool is_name)
{
	size_t number = torsh_hash_map_put_text(&state->texts, text, state->texts.n)->value;

	return CALL_KEY | (uint64_t)number << 1 | is_name;
}

static uint64_t name_of(struct perfetto *perfetto, struct sequence *sequence,
			struct calls_state *state, const char *text)
{
	bool is_new;
	uint64_t number = torsh_perfetto_made(sequence, key_of(state, text, true), &is_new);

	return torsh_perfetto_made_name(perfetto, sequence, number, is_new ? text : NULL);
}

static uint64_t text_of(struct perfetto *perfetto, struct sequence *sequence,
			struct calls_state *state, const char *text)
{
	bool is_new;
	uint64_t number = torsh_perfetto_made(sequence, key_of(state, text, false), &is_new);

	return torsh_perfetto_made_text(perfetto, sequence, number, is_new ? text : NULL);
}

/* Tracks of one name are shown as one, with a row for each. */
static uint64_t track_of(struct perfetto *perfetto, const struct sequence *sequence,
			 struct calls_state *state, uint32_t lane)
{
	while (state->n_tracks <= lane) {
		state->tracks = torsh_need_items(state->tracks, state->n_tracks,
						 state->n_tracks + 1, sizeof(*state->tracks));
		state->tracks[state->n_tracks++] =
			torsh_perfetto_add_track(perfetto, sequence, "collectives of ranks", NULL);
	}
	return state->tracks[lane];
}

static void put_call(struct perfetto *perfetto, struct sequence *sequence,
		     struct calls_state *state, const struct trace_call *call)
{
	uint64_t track = track_of(perfetto, sequence, state, call->lane);
	uint64_t name = name_of(perfetto, sequence, state, call->name);
	uint64_t group = text_of(perfetto, sequence, state, call->group);
	struct event_bytes event;

	perfetto_start(&event, PERFETTO__TRACK_EVENT__TYPE__SLICE_BEGIN, track);
	perfetto_field(&event, EVENT_NAME, name);
	perfetto_field(&event, EVENT_CATEGORY, CATEGORY_COLLECTIVE);
	torsh_perfetto_annotate(&event, ANNOTATION_SEQUENCE, ANNOTATION_UINT, call->sequence);
	torsh_perfetto_annotate(&event, ANNOTATION_GROUP, ANNOTATION_TEXT, group);
	torsh_perfetto_annotate(&event, ANNOTATION_BYTES, ANNOTATION_UINT, call->bytes);
	torsh_perfetto_annotate(&event, ANNOTATION_CLOCK_ERROR, ANNOTATION_UINT, call->error_ns);
	perfetto_eight(&event, call->is_last ? EVENT_LAST_FLOW : EVENT_FLOW,
		       FLOW_OF_CALL | call->flow);
	torsh_perfetto_past_event(perfetto, sequence, &event, call->begin_ns);
	perfetto_start(&event, PERFETTO__TRACK_EVENT__TYPE__SLICE_END, track);
	torsh_perfetto_past_event(perfetto, sequence, &event, call->end_ns);
}

void torsh_perfetto_put_calls(struct perfetto *perfetto, struct sequence *sequence)
{
	const struct trace_merge *merge = perfetto->trace->merge;
	struct calls_state state = {0};

	for (size_t i = 0; i < merge->n_calls; i++)
		put_call(perfetto, sequence, &state, &merge->calls[i]);
	torsh_hash_map_free(&state.texts);
	free(state.tracks);
}
