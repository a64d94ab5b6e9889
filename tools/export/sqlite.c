/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The timeline as an SQLite database. The statements below that make its tables say what is in them; SQLite keeps them,
 * comments included. The library is opened when it is needed: nothing else depends on it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/die.h"
#include "tools/export/trace.h"
#include "tools/profile/operators.h"

static const char tables[] =
	"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
	"CREATE TABLE meta (key TEXT PRIMARY KEY, value);\n"
	"CREATE TABLE processes (id INTEGER PRIMARY KEY, pid INTEGER, parent_pid INTEGER, program TEXT, rank TEXT,\n"
	"  start_ns INTEGER, end_ns INTEGER -- all times: since meta.start_realtime_ns\n);\n"
	"CREATE TABLE threads (process INTEGER, id INTEGER, tid INTEGER, name TEXT, PRIMARY KEY (process, id));\n"
	"CREATE TABLE strings (process INTEGER, id INTEGER, text TEXT, PRIMARY KEY (process, id));\n"
	"CREATE TABLE steps (process INTEGER, number INTEGER, start_ns INTEGER, end_ns INTEGER, rule TEXT);\n"
	"CREATE TABLE ops (id INTEGER, process INTEGER, thread INTEGER, start_ns INTEGER, end_ns INTEGER, self_ns INTEGER,\n"
	"  name INTEGER, inputs INTEGER, module INTEGER, -- of strings\n"
	"  outer INTEGER, -- id of the operator around it\n"
	"  scope INTEGER, -- 0 operator, 1 backward, 7 a scope of the program\n"
	"  sequence INTEGER, phase TEXT, step INTEGER, -- number\n"
	"  flops INTEGER, -- as FlopCounterMode counts, of itself; NULL: no formula\n"
	"  flops_all INTEGER, allocated_bytes INTEGER, freed_bytes INTEGER, -- of itself\n"
	"  is_async INTEGER, is_cut INTEGER, PRIMARY KEY (process, id));\n"
	"CREATE TABLE ranges (id INTEGER, process INTEGER, thread INTEGER, start_ns INTEGER, end_ns INTEGER,\n"
	"  name INTEGER, domain INTEGER, category INTEGER, -- of strings\n"
	"  source TEXT, -- torsh, nvtx, itt or module\n"
	"  payload REAL, is_async INTEGER, is_cut INTEGER, PRIMARY KEY (process, id));\n"
	"CREATE TABLE tensors (process INTEGER, thread INTEGER, at_ns INTEGER, address INTEGER,\n"
	"  bytes INTEGER, -- negative: given back\n"
	"  device INTEGER, -- type * 256 + index, in PyTorch's numbers\n"
	"  op INTEGER -- id of the innermost operator\n);\n"
	"CREATE TABLE marks (process INTEGER, thread INTEGER, at_ns INTEGER, name INTEGER);\n"
	"CREATE TABLE counters (process INTEGER, at_ns INTEGER, name INTEGER, value REAL);\n"
	"CREATE VIEW op_calls AS SELECT ops.*, n.text AS name_text, i.text AS inputs_text, m.text AS module_text\n"
	"  FROM ops LEFT JOIN strings n ON n.process = ops.process AND n.id = ops.name\n"
	"  LEFT JOIN strings i ON i.process = ops.process AND i.id = ops.inputs\n"
	"  LEFT JOIN strings m ON m.process = ops.process AND m.id = ops.module;\n"
	"BEGIN;";

static const char indexes[] = "CREATE INDEX ops_by_name ON ops (process, name);"
			      "CREATE INDEX ops_by_start ON ops (process, start_ns);"
			      "CREATE INDEX ranges_by_start ON ranges (process, start_ns);"
			      "CREATE INDEX tensors_by_time ON tensors (process, at_ns);"
			      "COMMIT;";

/* STATEMENT(NAME, table and number of its values) */
#define STATEMENTS                                                                               \
	STATEMENT(META, "meta VALUES (?, ?)")                                                    \
	STATEMENT(PROCESS, "processes VALUES (?, ?, ?, ?, ?, ?, ?)")                             \
	STATEMENT(THREAD, "threads VALUES (?, ?, ?, ?)")                                         \
	STATEMENT(STRING, "strings VALUES (?, ?, ?)")                                            \
	STATEMENT(STEP, "steps VALUES (?, ?, ?, ?, ?)")                                          \
	STATEMENT(OP, "ops VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)") \
	STATEMENT(RANGE, "ranges VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")                   \
	STATEMENT(TENSOR, "tensors VALUES (?, ?, ?, ?, ?, ?, ?)")                                \
	STATEMENT(MARK, "marks VALUES (?, ?, ?, ?)")                                             \
	STATEMENT(COUNTER, "counters VALUES (?, ?, ?, ?)")

enum statement {
#define STATEMENT(NAME, text) INSERT_##NAME,
	STATEMENTS
#undef STATEMENT
		N_STATEMENTS
};

/* FUNCTION(result, name, parameters): of the library, which has had them for twenty years. */
#define FUNCTIONS                                                                                                \
	FUNCTION(int, open, (const char *path, void **database))                                                 \
	FUNCTION(int, close, (void *database))                                                                   \
	FUNCTION(int, exec, (void *database, const char *sql, void *row, void *of, char **error))                \
	FUNCTION(int, prepare_v2, (void *database, const char *sql, int n, void **statement, const char **rest)) \
	FUNCTION(int, bind_int64, (void *statement, int i, int64_t value))                                       \
	FUNCTION(int, bind_double, (void *statement, int i, double value))                                       \
	FUNCTION(int, bind_text, (void *statement, int i, const char *text, int n, void (*let_go)(void *)))      \
	FUNCTION(int, bind_null, (void *statement, int i))                                                       \
	FUNCTION(int, step, (void *statement))                                                                   \
	FUNCTION(int, reset, (void *statement))                                                                  \
	FUNCTION(int, finalize, (void *statement))                                                               \
	FUNCTION(const char *, errmsg, (void *database))

#define SQLITE_DONE 101

struct sqlite {
	struct trace *trace;
	struct flops_book *book;
	void *library, *database, *statements[N_STATEMENTS];
#define FUNCTION(result, name, parameters) result(*name) parameters;
	FUNCTIONS
#undef FUNCTION
	void *at; /* the statement that is being filled */
	int n; /* values of it that are bound */
	bool has_failed;
};

static void load_library(struct sqlite *sqlite)
{
	sqlite->library = dlopen("libsqlite3.so.0", RTLD_NOW);
	if (!sqlite->library)
		torsh_die("SQLite is not on this machine (libsqlite3.so.0): install libsqlite3-0");
#define FUNCTION(result, name, parameters) \
	*(void **)(&sqlite->name) = torsh_need(dlsym(sqlite->library, "sqlite3_" #name));
	FUNCTIONS
#undef FUNCTION
}

static void fill(struct sqlite *sqlite, enum statement statement)
{
	sqlite->at = sqlite->statements[statement];
	sqlite->n = 0;
}

/* SQLite's numbers are signed: what is larger than they are is a made-up number. */
static void bind_number(struct sqlite *sqlite, uint64_t number)
{
	sqlite->bind_int64(sqlite->at, ++sqlite->n, (int64_t)number);
}

/* 0: none */
static void bind_label(struct sqlite *sqlite, uint32_t label)
{
	if (label)
		bind_number(sqlite, label);
	else
		sqlite->bind_null(sqlite->at, ++sqlite->n);
}

static void bind_known(struct sqlite *sqlite, bool is_known, uint64_t number)
{
	if (is_known)
		bind_number(sqlite, number);
	else
		sqlite->bind_null(sqlite->at, ++sqlite->n);
}

/* The text outlives the row's insertion. */
static void bind_text(struct sqlite *sqlite, const char *text)
{
	if (text)
		sqlite->bind_text(sqlite->at, ++sqlite->n, text, -1, NULL);
	else
		sqlite->bind_null(sqlite->at, ++sqlite->n);
}

static void insert(struct sqlite *sqlite)
{
	if (sqlite->step(sqlite->at) != SQLITE_DONE)
		sqlite->has_failed = true;
	sqlite->reset(sqlite->at);
}

static void see_begin(void *context, struct call *call)
{
	struct sqlite *sqlite = context;

	if (call->kind == CALL_OPERATOR)
		torsh_flops_book_begin(sqlite->book, call);
}

static void insert_operator(struct sqlite *sqlite, const struct call *call, const struct flops *own)
{
	const struct steps *steps = &torsh_survey_of(sqlite->trace->survey, call->process)->steps;
	const struct call *outer = torsh_call_outer_operator(call);
	uint64_t duration_ns = call->end_ns - call->start_ns;
	size_t step = torsh_steps_at(steps, call->start_ns);

	fill(sqlite, INSERT_OP);
	bind_number(sqlite, call->ordinal);
	bind_number(sqlite, call->process->number);
	bind_number(sqlite, call->thread);
	bind_number(sqlite, call->start_ns);
	bind_number(sqlite, call->end_ns);
	bind_number(sqlite, duration_ns > call->inner_ns ? duration_ns - call->inner_ns : 0);
	bind_label(sqlite, call->name);
	bind_label(sqlite, call->inputs);
	bind_label(sqlite, call->module);
	bind_known(sqlite, outer, outer ? outer->ordinal : 0);
	bind_number(sqlite, call->scope);
	bind_known(sqlite, call->sequence != OP_NO_SEQUENCE, call->sequence);
	bind_text(sqlite, torsh_phase_names[call->phase]);
	bind_known(sqlite, step != STEP_NONE, step != STEP_NONE ? steps->items[step].number : 0);
	bind_known(sqlite, own->status != FLOPS_NO_FORMULA, own->counter);
	bind_known(sqlite, own->status != FLOPS_NO_FORMULA, own->all);
	bind_number(sqlite, call->self_allocated_bytes);
	bind_number(sqlite, call->self_freed_bytes);
	bind_number(sqlite, call->is_async);
	bind_number(sqlite, call->is_cut);
	insert(sqlite);
}

static void insert_range(struct sqlite *sqlite, const struct call *call)
{
	static const char *const sources[] = {"torsh", "nvtx", "itt", "module"};
	double payload;

	fill(sqlite, INSERT_RANGE);
	bind_number(sqlite, call->ordinal);
	bind_number(sqlite, call->process->number);
	bind_number(sqlite, call->thread);
	bind_number(sqlite, call->start_ns);
	bind_number(sqlite, call->end_ns);
	bind_label(sqlite, call->name);
	bind_label(sqlite, call->domain);
	bind_label(sqlite, call->category);
	bind_text(sqlite, call->source < sizeof(sources) / sizeof(*sources) ? sources[call->source] : NULL);
	if (torsh_trace_payload(call->payload_type, call->payload, &payload))
		sqlite->bind_double(sqlite->at, ++sqlite->n, payload);
	else
		sqlite->bind_null(sqlite->at, ++sqlite->n);
	bind_number(sqlite, call->is_async);
	bind_number(sqlite, call->is_cut);
	insert(sqlite);
}

static void see_end(void *context, struct call *call)
{
	struct sqlite *sqlite = context;
	struct flops own = {.status = FLOPS_NO_FORMULA};

	if (call->kind == CALL_OPERATOR)
		own = torsh_flops_book_end(sqlite->book, call);
	if (!torsh_trace_has(sqlite->trace, call->start_ns))
		return;
	if (call->kind == CALL_OPERATOR)
		insert_operator(sqlite, call, &own);
	else
		insert_range(sqlite, call);
}

static void see_tensor(struct sqlite *sqlite, const struct profile_process *process, const struct timeline_event *event,
		       struct call *innermost)
{
	const struct event_tensor *tensor = &event->event.tensor;

	torsh_trace_add_tensor(innermost, tensor);
	if (!torsh_trace_has(sqlite->trace, event->at_ns))
		return;
	fill(sqlite, INSERT_TENSOR);
	bind_number(sqlite, process->number);
	bind_number(sqlite, event->thread);
	bind_number(sqlite, event->at_ns);
	bind_number(sqlite, tensor->address);
	bind_number(sqlite, tensor->is_free ? -tensor->bytes : tensor->bytes);
	bind_number(sqlite, tensor->device);
	bind_known(sqlite, innermost, innermost ? innermost->ordinal : 0);
	insert(sqlite);
}

static void see_event(void *context, const struct profile_process *process, const struct timeline_event *event,
		      struct call *innermost)
{
	struct sqlite *sqlite = context;
	const struct event_value *value = &event->event.value;
	double number;

	if (event->event.id == EVENT_TENSOR) {
		see_tensor(sqlite, process, event, innermost);
	} else if (!torsh_trace_has(sqlite->trace, event->at_ns)) {
		return;
	} else if (event->event.id == EVENT_MARK) {
		fill(sqlite, INSERT_MARK);
		bind_number(sqlite, process->number);
		bind_number(sqlite, event->thread);
		bind_number(sqlite, event->at_ns);
		bind_label(sqlite, event->event.mark.name);
		insert(sqlite);
	} else if (event->event.id == EVENT_VALUE &&
		   torsh_trace_payload(value->payload_type, value->payload, &number)) {
		fill(sqlite, INSERT_COUNTER);
		bind_number(sqlite, process->number);
		bind_number(sqlite, event->at_ns);
		bind_label(sqlite, value->name);
		sqlite->bind_double(sqlite->at, ++sqlite->n, number);
		insert(sqlite);
	}
}

static void insert_process(struct sqlite *sqlite, const struct profile_process *process)
{
	const struct steps *steps = &torsh_survey_of(sqlite->trace->survey, process)->steps;

	fill(sqlite, INSERT_PROCESS);
	bind_number(sqlite, process->number);
	bind_number(sqlite, process->pid);
	bind_number(sqlite, process->parent_pid);
	bind_text(sqlite, process->program);
	bind_text(sqlite, process->rank);
	bind_number(sqlite, process->start_ns);
	bind_number(sqlite, process->end_ns);
	insert(sqlite);
	for (size_t i = 0; i < process->n_threads; i++) {
		fill(sqlite, INSERT_THREAD);
		bind_number(sqlite, process->number);
		bind_number(sqlite, i);
		bind_number(sqlite, process->threads[i].tid);
		bind_text(sqlite, process->threads[i].name);
		insert(sqlite);
	}
	for (uint32_t label = 1; label <= process->n_functions; label++) {
		fill(sqlite, INSERT_STRING);
		bind_number(sqlite, process->number);
		bind_number(sqlite, label);
		bind_text(sqlite, torsh_timeline_label(process, label));
		insert(sqlite);
	}
	for (size_t i = 0; i < steps->n; i++) {
		fill(sqlite, INSERT_STEP);
		bind_number(sqlite, process->number);
		bind_number(sqlite, steps->items[i].number);
		bind_number(sqlite, steps->items[i].start_ns);
		bind_number(sqlite, steps->items[i].end_ns);
		bind_text(sqlite, torsh_step_rule_names[steps->rule]);
		insert(sqlite);
	}
}

static void insert_meta(struct sqlite *sqlite)
{
	fill(sqlite, INSERT_META);
	bind_text(sqlite, "start_realtime_ns");
	bind_number(sqlite, sqlite->trace->profile->start_realtime_ns);
	insert(sqlite);
	fill(sqlite, INSERT_META);
	bind_text(sqlite, "host");
	bind_text(sqlite, sqlite->trace->profile->host);
	insert(sqlite);
}

/* Dies with SQLite's own words. */
static void execute(struct sqlite *sqlite, const char *sql)
{
	if (sqlite->exec(sqlite->database, sql, NULL, NULL, NULL))
		torsh_die("SQLite: %s", sqlite->errmsg(sqlite->database));
}

static void open_database(struct sqlite *sqlite, const char *path)
{
	static const char *const inserts[] = {
#define STATEMENT(NAME, text) "INSERT INTO " text,
		STATEMENTS
#undef STATEMENT
	};

	if (sqlite->open(path, &sqlite->database))
		torsh_die("can't write %s: %s", path, sqlite->errmsg(sqlite->database));
	execute(sqlite, tables);
	for (size_t i = 0; i < N_STATEMENTS; i++) {
		if (sqlite->prepare_v2(sqlite->database, inserts[i], -1, &sqlite->statements[i], NULL))
			torsh_die("SQLite: %s", sqlite->errmsg(sqlite->database));
	}
}

static int close_database(struct sqlite *sqlite)
{
	for (size_t i = 0; i < N_STATEMENTS; i++)
		sqlite->finalize(sqlite->statements[i]);
	if (!sqlite->has_failed)
		execute(sqlite, indexes);
	sqlite->close(sqlite->database);
	return sqlite->has_failed ? -EIO : 0;
}

static int write_sqlite(struct trace *trace)
{
	static const struct calls_visitor visitor = {.begin = see_begin, .end = see_end, .event = see_event};
	struct sqlite sqlite = {.trace = trace};
	char *temporary = torsh_need_text("%s.tmp", trace->path);
	int rc, closed;

	load_library(&sqlite);
	unlink(temporary);
	open_database(&sqlite, temporary);
	sqlite.book = torsh_flops_book_create();
	insert_meta(&sqlite);
	for (size_t i = 0; i < trace->n_processes; i++)
		insert_process(&sqlite, trace->processes[i]);
	rc = torsh_trace_walk(trace, &visitor, &sqlite);
	closed = close_database(&sqlite);
	rc = rc < 0 ? rc : closed;
	if (rc == 0 && rename(temporary, trace->path) < 0)
		rc = -errno;
	if (rc < 0)
		unlink(temporary);
	torsh_flops_book_destroy(sqlite.book);
	dlclose(sqlite.library);
	free(temporary);
	return rc;
}

const struct trace_format torsh_trace_sqlite = {
	.name = "sqlite", .ending = ".sqlite", .is_binary = true, .needs_path = true, .write = write_sqlite};
