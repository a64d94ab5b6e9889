/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What NCCL reported: communicators, and every call, group, launch, channel and transfer. */
#include <inttypes.h>
#include <stdio.h>

#include "tools/export/sqlite/sqlite.h"

static void insert_span(struct sqlite *sqlite, const struct nccl_span *span)
{
	struct database *database = &sqlite->database;

	if (!torsh_trace_has(sqlite->trace, span->start_ns))
		return;
	torsh_database_fill(database, INSERT_NCCL_SPAN);
	torsh_database_number(database, span->process->number);
	torsh_database_number(database, span->number);
	torsh_database_known(database, span->parent, span->parent);
	torsh_database_known(database, span->communicator, span->communicator);
	torsh_database_word(database, torsh_nccl_kind_names[span->kind]);
	torsh_database_number(database, span->thread);
	torsh_database_number(database, span->start_ns);
	torsh_database_number(database, span->end_ns);
	torsh_database_text(database, span->function);
	torsh_database_text(database, span->datatype);
	torsh_database_known(database, span->function, span->count);
	torsh_database_known(database, span->has_bytes, span->bytes);
	torsh_database_known(database, span->function && !span->peer && span->root >= 0,
			     (uint64_t)span->root);
	torsh_database_known(database, span->peer, span->peer - 1);
	torsh_database_text(database, span->algorithm);
	torsh_database_text(database, span->protocol);
	torsh_database_known(database, span->channels, span->channels);
	torsh_database_known(database, span->sequence != COLLECTIVE_NO_SEQUENCE, span->sequence);
	torsh_database_known(database, span->collective, span->collective);
	torsh_database_known(database, span->has_channel, span->channel);
	torsh_database_known(database, span->kind == NCCL_PROXY_STEP, span->step);
	torsh_database_known(database, span->kind == NCCL_PROXY_OPERATION, span->is_send);
	torsh_database_known(database, span->device_start_ns, span->device_start_ns);
	torsh_database_known(database, span->device_end_ns, span->device_end_ns);
	torsh_database_number(database, span->is_cut);
	torsh_database_insert(database);
}

static void insert_communicator(struct database *database,
				const struct nccl_communicator *communicator)
{
	const struct event_nccl_communicator *event = &communicator->event;
	char hash[20];

	snprintf(hash, sizeof(hash), "%016" PRIx64, event->hash);
	torsh_database_fill(database, INSERT_NCCL_COMMUNICATOR);
	torsh_database_number(database, communicator->process->number);
	torsh_database_number(database, event->number);
	torsh_database_text(database, event->hash ? hash : NULL);
	torsh_database_text(database, communicator->name);
	torsh_database_known(database, event->n_nodes, event->n_nodes);
	torsh_database_known(database, event->n_ranks, event->n_ranks);
	torsh_database_known(database, event->rank, event->rank - 1);
	torsh_database_number(database, event->version);
	torsh_database_word(database, torsh_nccl_source_name(communicator));
	torsh_database_insert(database);
}

void torsh_sqlite_nccl_see(struct sqlite *sqlite, const struct recorded_process *process,
			   const struct timeline_event *event)
{
	bool is_end;
	const struct nccl_span *span = torsh_nccl_spans_see(&sqlite->nccl, process, event, &is_end);

	if (span && is_end)
		insert_span(sqlite, span);
}

void torsh_sqlite_nccl_insert(struct sqlite *sqlite)
{
	const struct nccl_span *span;

	while ((span = torsh_nccl_spans_cut(&sqlite->nccl)))
		insert_span(sqlite, span);
	for (size_t i = 0; i < sqlite->nccl.n_communicators; i++)
		insert_communicator(&sqlite->database, &sqlite->nccl.communicators[i]);
	torsh_nccl_spans_free(&sqlite->nccl);
}
