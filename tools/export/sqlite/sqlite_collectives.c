/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Collectives and messages between ranks, each once, with when it was complete and who waited. */
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/export/sqlite/sqlite.h"

static void put_text(struct database *database, const char *text, size_t n)
{
	char *copy = text ? torsh_need_text("%.*s", (int)n, text) : NULL;

	torsh_database_text(database, copy);
	free(copy);
}

static void insert_call(struct database *database, const struct collective_call *call)
{
	torsh_database_fill(database, INSERT_COLLECTIVE_CALL);
	torsh_database_number(database, call->process->number);
	torsh_database_number(database, call->number);
	torsh_database_word(database, torsh_collective_kind_names[call->kind]);
	put_text(database, call->name, call->n_name);
	put_text(database, call->dtype, call->n_dtype);
	torsh_database_text(database, call->group);
	torsh_database_number(database, call->instance);
	torsh_database_known(database, call->own_rank, call->own_rank - 1);
	torsh_database_known(database, call->sequence != COLLECTIVE_NO_SEQUENCE, call->sequence);
	torsh_database_known(database, call->peer, call->peer - 1);
	torsh_database_known(database,
			     call->kind != COLLECTIVE_OF_ALL && call->tag != COLLECTIVE_ANY_TAG,
			     call->tag);
	torsh_database_known(database, call->has_bytes, call->in_bytes);
	torsh_database_known(database, call->has_bytes, call->out_bytes);
	torsh_database_number(database, call->call_ns);
	torsh_database_known(database, call->has_begin, call->begin_ns);
	torsh_database_known(database, call->has_end, call->end_ns);
	torsh_database_number(database, call->n_waits);
	torsh_database_known(database, call->n_waits, call->wait_begin_ns);
	torsh_database_known(database, call->n_waits, call->wait_ns);
	torsh_database_number(database, call->has_failed);
	torsh_database_text(database, call->algorithm);
	torsh_database_text(database, call->protocol);
	torsh_database_known(database, call->channels, call->channels);
	torsh_database_known(database, call->has_nccl_bytes, call->nccl_bytes);
	torsh_database_insert(database);
}

void torsh_sqlite_collectives_insert(struct sqlite *sqlite)
{
	for (size_t i = 0; i < sqlite->calls_of_ranks.n; i++)
		if (torsh_trace_has(sqlite->trace, sqlite->calls_of_ranks.items[i].call_ns))
			insert_call(&sqlite->database, &sqlite->calls_of_ranks.items[i]);
	torsh_collective_calls_free(&sqlite->calls_of_ranks);
}
