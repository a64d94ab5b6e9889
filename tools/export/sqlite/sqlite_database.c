/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/export/sqlite/sqlite_database.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/base/utf8.h"

#define SQLITE_DONE 101

static void load_library(struct database *database)
{
	database->library = dlopen("libsqlite3.so.0", RTLD_NOW);
	if (!database->library)
		torsh_die("SQLite is not on this machine (libsqlite3.so.0): install libsqlite3-0");
#define FUNCTION(result, name, parameters) \
	*(void **)(&database->name) = torsh_need(dlsym(database->library, "sqlite3_" #name));
	FUNCTIONS
#undef FUNCTION
}

void torsh_database_fill(struct database *database, enum statement statement)
{
	database->at = database->statements[statement];
	database->n = 0;
}

void torsh_database_number(struct database *database, uint64_t number)
{
	database->bind_int64(database->at, ++database->n, (int64_t)number);
}

void torsh_database_known(struct database *database, bool is_known, uint64_t number)
{
	if (is_known)
		torsh_database_number(database, number);
	else
		database->bind_null(database->at, ++database->n);
}

void torsh_database_real(struct database *database, bool is_known, double number)
{
	if (is_known)
		database->bind_double(database->at, ++database->n, number);
	else
		database->bind_null(database->at, ++database->n);
}

void torsh_database_word(struct database *database, const char *word)
{
	if (word)
		database->bind_text(database->at, ++database->n, word, -1, NULL);
	else
		database->bind_null(database->at, ++database->n);
}

void torsh_database_text(struct database *database, const char *text)
{
	if (text)
		database->bind_text(database->at, ++database->n, torsh_utf8_clean(text), -1, free);
	else
		database->bind_null(database->at, ++database->n);
}

void torsh_database_insert(struct database *database)
{
	if (database->step(database->at) != SQLITE_DONE)
		database->has_failed = true;
	database->reset(database->at);
}

/* Ends the program with SQLite's message on failure. */
static void execute(struct database *database, const char *sql)
{
	if (database->exec(database->handle, sql, NULL, NULL, NULL))
		torsh_die("SQLite: %s", database->errmsg(database->handle));
}

void torsh_database_open(struct database *database, const char *path)
{
	static const char *const inserts[] = {
#define STATEMENT(NAME, text) "INSERT INTO " text,
		STATEMENTS MORE_STATEMENTS
#undef STATEMENT
	};

	*database = (struct database){0};
	load_library(database);
	if (database->open(path, &database->handle))
		torsh_die("can't write %s: %s", path, database->errmsg(database->handle));
	execute(database,
		"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;" TABLES MORE_TABLES "BEGIN;");
	for (size_t i = 0; i < N_STATEMENTS; i++) {
		if (database->prepare_v2(database->handle, inserts[i], -1, &database->statements[i],
					 NULL))
			torsh_die("SQLite: %s", database->errmsg(database->handle));
	}
}

int torsh_database_close(struct database *database)
{
	for (size_t i = 0; i < N_STATEMENTS; i++)
		database->finalize(database->statements[i]);
	if (!database->has_failed)
		execute(database, INDEXES MORE_INDEXES "COMMIT;");
	database->close(database->handle);
	dlclose(database->library);
	return database->has_failed ? -EIO : 0;
}
