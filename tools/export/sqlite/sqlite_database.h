/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * An SQLite database that is written row by row, all in one transaction. The library is opened when
 * it is needed: nothing else depends on it.
 */
#ifndef TORSH_EXPORT_SQLITE_SQLITE_DATABASE_H
#define TORSH_EXPORT_SQLITE_SQLITE_DATABASE_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/export/sqlite/sqlite_tables.h"

/* FUNCTION(result, name, parameters): of the library, which has had them for twenty years. */
#define FUNCTIONS                                                                                 \
	FUNCTION(int, open, (const char *path, void **database))                                  \
	FUNCTION(int, close, (void *database))                                                    \
	FUNCTION(int, exec, (void *database, const char *sql, void *row, void *of, char **error)) \
	FUNCTION(int, prepare_v2,                                                                 \
		 (void *database, const char *sql, int n, void **statement, const char **rest))   \
	FUNCTION(int, bind_int64, (void *statement, int i, int64_t value))                        \
	FUNCTION(int, bind_double, (void *statement, int i, double value))                        \
	FUNCTION(int, bind_text,                                                                  \
		 (void *statement, int i, const char *text, int n, void (*let_go)(void *)))       \
	FUNCTION(int, bind_null, (void *statement, int i))                                        \
	FUNCTION(int, step, (void *statement))                                                    \
	FUNCTION(int, reset, (void *statement))                                                   \
	FUNCTION(int, finalize, (void *statement))                                                \
	FUNCTION(const char *, errmsg, (void *database))

struct database {
	void *library, *handle, *statements[N_STATEMENTS];
#define FUNCTION(result, name, parameters) result(*name) parameters;
	FUNCTIONS
#undef FUNCTION
	void *at; /* the statement that is being filled */
	int n; /* values of it that are bound */
	bool has_failed;
};

/* Create the database and its tables. Ends the program with SQLite's message on failure. */
void torsh_database_open(struct database *database, const char *path);
/* Create the indexes and close. Returns 0, or -EIO if a row was not written. */
int torsh_database_close(struct database *database);

/* Begin a row: bind its values in order, then call torsh_database_insert. */
void torsh_database_fill(struct database *database, enum statement statement);

/* Insert the row that was bound. */
void torsh_database_insert(struct database *database);

/* SQLite's integers are signed: larger numbers are invalid. */
void torsh_database_number(struct database *database, uint64_t number);
/* Bind a number; NULL if unknown. */
void torsh_database_known(struct database *database, bool is_known, uint64_t number);

/* Likewise, a floating-point number. */
void torsh_database_real(struct database *database, bool is_known, double number);
/* Bind a copy of a text; invalid UTF-8 becomes U+FFFD, NULL stays NULL. */
void torsh_database_text(struct database *database, const char *text);
/* The same of a constant, which is not copied. */
void torsh_database_word(struct database *database, const char *word);

#endif
