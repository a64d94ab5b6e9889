/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Requests of a server that speaks HTTP/1 on a socket by recv and send, or as uvloop by read and
 * write: from the data with which one begins to that with which its response ends, by the
 * response's own length. Nothing of the server's program is called, or known.
 *
 * A connection is used by one thread at a time.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "agent/process/config.h"
#include "agent/wire/event.h"
#include "shim/hooks.h"
#include "shim/ranges/ranges.h"
#include "shim/ranges/task_calls.h"
#include "shim/sys.h"

#define REQUEST_DOMAIN "torsh.request"
#define CONNECTIONS 4096u /* descriptors; others have no requests */
#define METHOD_MAX 16u
#define NAME_BYTES 192u /* of the method and the path, which is cut there */
#define LINE_BYTES 8192u /* of a request's first line, as servers limit it */

enum response {
	RESPONSE_NONE, /* no request is open */
	RESPONSE_DUE,
	RESPONSE_OF_LENGTH,
	RESPONSE_IN_CHUNKS,
	RESPONSE_UNTIL_CLOSE, /* its end is not among its data: it lasts to the last of it */
};

struct connection {
	enum response response;
	bool has_no_body; /* of a request by HEAD */
	uint32_t name; /* a label */
	uint64_t range; /* open; 0: none */
	uint64_t number; /* of the request */
	uint64_t former; /* for which one the thread worked before */
	uint64_t left; /* bytes of the response */
	uint64_t last; /* eight bytes of it, the last one lowest */
};

static void *_Atomic connections; /* CONNECTIONS of them; NULL: none yet */

static const char chunks_end[] = "0\r\n\r\n";

/* A range of the request. */
static void begin(struct connection *connection)
{
	const struct range_attributes range = {
		.name = {.label = connection->name},
		.domain = {.bytes = REQUEST_DOMAIN},
		.source = RANGE_BY_TORSH,
		.payload_type = PAYLOAD_U64,
		.payload = connection->number,
	};

	connection->range = torsh_ranges_number();
	torsh_ranges_start(&range, connection->range);
}

static void end_range(struct connection *connection)
{
	if (!connection->range)
		return;
	if (torsh_task_current() == connection->number)
		torsh_task_turn(connection->former);
	torsh_task_end(connection->number);
	torsh_ranges_end(connection->range);
	connection->range = 0;
}

static void end(struct connection *connection)
{
	end_range(connection);
	*connection = (struct connection){0};
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Returns the length of the method that the data begins with; 0: none. */
static size_t method_of(const char *data, size_t n)
{
	size_t i = 0;

	while (i < n && i < METHOD_MAX && data[i] >= 'A' && data[i] <= 'Z')
		i++;
	return i >= 3 && i + 1 < n && data[i] == ' ' && data[i + 1] == '/' ? i : 0;
}

/* Returns the length of method and path, without a query; 0: this is no first line of a request. */
static size_t name_of(const char *data, size_t n)
{
	size_t method = method_of(data, n), length = 0, at;

	if (!method)
		return 0;
	n = n < LINE_BYTES ? n : LINE_BYTES;
	for (at = method + 1; at < n && data[at] > ' '; at++) {
		if (!length && data[at] == '?')
			length = at;
	}
	return n - at > 8 && !memcmp(data + at, " HTTP/1.", 8) ? (length ? length : at) : 0;
}

/* Returns where the value of that header begins; NULL: there is none. */
static const char *header(const char *data, const char *end_of, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = data; at + n + 2 < end_of; at++) {
		if (at[0] == '\r' && at[1] == '\n' && !strncasecmp(at + 2, name, n))
			return at + 2 + n;
	}
	return NULL;
}

static bool is_of_http(uint64_t number)
{
	return number >= TASK_NUMBERS_HTTP && number < TASK_NUMBERS_OWN;
}

/*
 * What the thread does from here on counts for the request, unless it is one of several that the
 * thread serves at once: in a loop, or where another one isn't answered yet.
 */
static void begin_task(struct connection *connection, const char *name, const char *data, size_t n,
		       bool is_in_loop)
{
	const char *value = header(data, data + n, "traceparent:"), *end_of = data + n;
	uint64_t current = torsh_task_current();
	struct task_begin task = {.number = connection->number, .kind = TASK_HTTP, .name = name};

	while (value && value < end_of && *value == ' ')
		value++;
	task.traceparent = value;
	while (value && value + task.n_traceparent < end_of && value[task.n_traceparent] > ' ')
		task.n_traceparent++;
	if (is_of_http(current))
		torsh_task_begin(&(struct task_begin){
			.number = current, .kind = TASK_HTTP, .flags = TASK_IS_SHARED});
	if (is_in_loop || is_of_http(current) || torsh_task_is_visiting())
		task.flags = TASK_IS_SHARED;
	else
		task.parent = current;
	torsh_task_begin(&task);
	if (!task.flags)
		connection->former = torsh_task_turn(connection->number);
}

/* Not inlined: the name isn't on the stack of what does not begin a request. */
static __attribute__((noinline)) void begin_named(struct connection *connection, const char *data,
						  size_t length, size_t n, bool is_in_loop)
{
	char name[NAME_BYTES];

	length = length < sizeof(name) ? length : sizeof(name) - 1;
	memcpy(name, data, length);
	name[length] = '\0';
	if (!torsh_ranges_wanted(RANGE_BY_TORSH))
		return;
	*connection = (struct connection){
		.response = RESPONSE_DUE,
		.has_no_body = !memcmp(data, "HEAD ", 5),
		.name = torsh_ranges_label(name),
		.number = TASK_NUMBERS_HTTP + torsh_ranges_number(),
	};
	begin(connection);
	begin_task(connection, name, data, n, is_in_loop);
}

/* A forked child goes on with what its parent received. */
static struct connection *get_connections(void)
{
	const size_t n_bytes = CONNECTIONS * sizeof(struct connection);
	void *known = atomic_load_explicit(&connections, memory_order_acquire), *made;

	if (known)
		return known;
	made = torsh_sys_pages(n_bytes);
	if (!made || atomic_compare_exchange_strong(&connections, &known, made))
		return made;
	torsh_sys_munmap(made, n_bytes);
	return known;
}

/* NULL: it has no requests. */
static struct connection *connection_of(int fd)
{
	struct connection *all;

	if (!torsh_config.requests || fd < 0 || (uint32_t)fd >= CONNECTIONS)
		return NULL;
	all = get_connections();
	return all ? &all[fd] : NULL;
}

void torsh_http_received(int fd, const void *data, ssize_t n, bool is_in_loop)
{
	struct connection *connection = connection_of(fd);
	size_t length;

	if (!connection)
		return;
	/* The client is gone. */
	if (n == 0)
		end(connection);
	/* While a response is due what comes is the request's body. */
	if (n <= 0 || connection->response == RESPONSE_DUE)
		return;
	length = name_of(data, (size_t)n);
	if (!length)
		return;
	end(connection);
	begin_named(connection, data, length, (size_t)n, is_in_loop);
}

/* ---- responses ------------------------------------------------------------------------------- */

static uint64_t number_at(const char *at, const char *end_of)
{
	uint64_t number = 0;

	while (at < end_of && *at == ' ')
		at++;
	for (; at < end_of && *at >= '0' && *at <= '9'; at++)
		number = number * 10 + (uint64_t)(*at - '0');
	return number;
}

/*
 * The head of a response is whole in this, if it has one. Returns how many bytes it has; 0: it is
 * not whole, or not the final one.
 */
static size_t read_head(struct connection *connection, const char *data, size_t n)
{
	const char *end_of = memmem(data, n, "\r\n\r\n", 4);
	uint64_t status;
	const char *value;

	if (n < 13 || memcmp(data, "HTTP/1.", 7) || !end_of) {
		connection->response = RESPONSE_UNTIL_CLOSE;
		return 0;
	}
	status = number_at(data + 8, end_of);
	if (status >= 100 && status < 200 && status != 101)
		return 0;
	connection->response = RESPONSE_OF_LENGTH;
	if (connection->has_no_body || status == 101 || status == 204 || status == 304)
		return n;
	value = header(data, end_of, "content-length:");
	if (value)
		connection->left = number_at(value, end_of);
	else if ((value = header(data, end_of, "transfer-encoding:")) &&
		 !strncasecmp(value + (*value == ' '), "chunked", 7))
		connection->response = RESPONSE_IN_CHUNKS;
	else
		connection->response = RESPONSE_UNTIL_CLOSE;
	return (size_t)(end_of - data) + 4;
}

static bool ends_chunks(struct connection *connection, const char *data, size_t n)
{
	uint64_t wanted = 0;

	for (size_t i = n > 8 ? n - 8 : 0; i < n; i++)
		connection->last = connection->last << 8 | (unsigned char)data[i];
	for (size_t i = 0; i < sizeof(chunks_end) - 1; i++)
		wanted = wanted << 8 | (unsigned char)chunks_end[i];
	return (connection->last & UINT64_C(0xffffffffff)) == wanted;
}

/* What is sent of a body. */
static void take_body(struct connection *connection, const char *data, size_t n)
{
	if (connection->response == RESPONSE_IN_CHUNKS) {
		if (ends_chunks(connection, data, n))
			end(connection);
		return;
	}
	connection->left -= n < connection->left ? n : connection->left;
	if (!connection->left)
		end(connection);
}

void torsh_http_sent(int fd, const void *data, ssize_t n)
{
	struct connection *connection = connection_of(fd);
	size_t head = 0;

	if (!connection || n <= 0 || connection->response == RESPONSE_NONE)
		return;
	if (connection->response == RESPONSE_DUE) {
		head = read_head(connection, data, (size_t)n);
		if (connection->response == RESPONSE_DUE)
			return;
	}
	if (connection->response == RESPONSE_UNTIL_CLOSE && !connection->range)
		begin(connection);
	if (connection->response == RESPONSE_UNTIL_CLOSE)
		end_range(connection);
	else
		take_body(connection, (const char *)data + head, (size_t)n - head);
}
