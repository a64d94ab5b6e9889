/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/recording/clocks/recorded_clocks.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

#define NS_MAX (UINT64_C(1) << 61) /* sums of two fit */

bool torsh_recorded_clocks_peer(struct recorded_clocks *clocks, const Torsh__ClockPeer *row)
{
	struct recorded_clock_peer *peer;

	if (row->peer >= RECORDED_CLOCK_PEERS_MAX)
		return false;
	peer = &clocks->peers[row->peer];
	free(peer->name);
	peer->name = torsh_need(strdup(row->name ? row->name : ""));
	peer->is_here = row->is_here;
	peer->sent = row->sent;
	peer->answered = row->answered;
	peer->replies = row->replies;
	peer->refused = row->refused;
	return true;
}

bool torsh_recorded_clocks_exchanges(struct recorded_clocks *clocks,
				     const Torsh__ClockExchanges *row)
{
	size_t n = row->n_sent_step;
	struct recorded_clock_peer *peer;
	uint64_t sent_ns = 0;

	if (row->peer >= RECORDED_CLOCK_PEERS_MAX || !row->clock || row->n_received_after != n ||
	    row->n_replied_after != n || row->n_returned_after != n)
		return false;
	peer = &clocks->peers[row->peer];
	for (size_t i = 0; i < n; i++) {
		uint64_t received_ns, replied_ns, returned_ns;

		sent_ns += row->sent_step[i] < NS_MAX ? row->sent_step[i] : NS_MAX;
		received_ns = sent_ns + (uint64_t)row->received_after[i];
		replied_ns = received_ns + row->replied_after[i];
		returned_ns = sent_ns + row->returned_after[i];
		if (sent_ns > NS_MAX || received_ns > NS_MAX || replied_ns > NS_MAX ||
		    returned_ns > NS_MAX)
			return false;
		peer->exchanges =
			torsh_array_reserve(peer->exchanges, peer->n_exchanges,
					    &peer->exchanges_room, sizeof(*peer->exchanges));
		peer->exchanges[peer->n_exchanges++] =
			(struct recorded_exchange){.clock = row->clock,
						   .sent_ns = sent_ns,
						   .received_ns = received_ns,
						   .replied_ns = replied_ns,
						   .returned_ns = returned_ns};
	}
	return true;
}

void torsh_recorded_clocks_free(struct recorded_clocks *clocks)
{
	for (size_t i = 0; i < RECORDED_CLOCK_PEERS_MAX; i++) {
		free(clocks->peers[i].name);
		free(clocks->peers[i].exchanges);
	}
	*clocks = (struct recorded_clocks){0};
}
