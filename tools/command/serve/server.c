/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/serve/server.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>

#include "tools/base/die.h"
#include "tools/command/serve/answers.h"
#include "tools/export/html/html_parts.h"

#define TOKEN_BYTES 32u
#define TOKEN_LETTERS (2 * TOKEN_BYTES)
#define REQUEST_BYTES_MAX 8192 /* the first line and the headers */
#define WAIT_S 10 /* timeout of a client that neither sends nor reads */
#define CONNECTIONS_MAX 256u
#define RETRY_US 100000 /* pause when all descriptors are in use */
#define ALL_METHODS 0xffff /* including methods that libevent doesn't name */
#define N_ADDRESSES 2u
#define SIGNALS 3u

struct server {
	struct event_base *base;
	struct evhttp *http;
	struct evhttp_bound_socket *bound[N_ADDRESSES];
	struct event *signals[SIGNALS], *retry;
	struct answers answers;
	uint16_t port;
	char token[TOKEN_LETTERS + 1], *address, *policy, *page;
	size_t page_bytes;
};

/*
 * For the callback of a failed accept, which has no context argument. A process has only one
 * server.
 */
static struct server *running;

/* ---- replies --------------------------------------------------------------------------------- */

static void add_headers(struct evhttp_request *request, const char *type, const char *policy)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(request);

	evhttp_add_header(headers, "Content-Type", type);
	evhttp_add_header(headers, "Content-Security-Policy", policy);
	evhttp_add_header(headers, "Cache-Control", "no-store");
	evhttp_add_header(headers, "Referrer-Policy", "no-referrer");
	evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
	evhttp_add_header(headers, "X-Frame-Options", "DENY");
	evhttp_add_header(headers, "Cross-Origin-Resource-Policy", "same-origin");
	evhttp_add_header(headers, "Cross-Origin-Opener-Policy", "same-origin-allow-popups");
}

static void refuse(struct evhttp_request *request, int status, const char *sentence)
{
	struct evbuffer *body = torsh_need(evbuffer_new());

	add_headers(request, "text/plain; charset=utf-8", "default-src 'none'");
	evbuffer_add_printf(body, "%s\n", sentence);
	evhttp_send_reply(request, status, NULL, body);
	evbuffer_free(body);
}

static void send_file(struct evhttp_request *request, int fd)
{
	struct evbuffer *body = torsh_need(evbuffer_new());
	off_t n = lseek(fd, 0, SEEK_END);

	/* Takes ownership of the descriptor only on success. */
	if (n < 0 || evbuffer_add_file(body, fd, 0, n) < 0) {
		if (fd >= 0)
			close(fd);
		refuse(request, HTTP_INTERNAL, "the answer cannot be sent");
	} else {
		add_headers(request, "application/json", "default-src 'none'");
		evhttp_send_reply(request, HTTP_OK, NULL, body);
	}
	evbuffer_free(body);
}

static void send_page(const struct server *server, struct evhttp_request *request)
{
	struct evbuffer *body = torsh_need(evbuffer_new());

	add_headers(request, "text/html; charset=utf-8", server->policy);
	evbuffer_add_reference(body, server->page, server->page_bytes, NULL, NULL);
	evhttp_send_reply(request, HTTP_OK, NULL, body);
	evbuffer_free(body);
}

/* ---- requests -------------------------------------------------------------------------------- */

/*
 * A foreign host name means DNS rebinding: another site's page made its name resolve to this
 * address.
 */
static bool is_own_host(const struct server *server, const char *host)
{
	static const char *const names[] = {"127.0.0.1", "[::1]", "localhost"};
	char own[32];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(own, sizeof(own), "%s:%u", names[i], server->port);
		if (strcmp(host, own) == 0)
			return true;
		if (server->port == 80 && strcmp(host, names[i]) == 0)
			return true;
	}
	return false;
}

/* Requires exactly one Host header that names this server. */
static bool has_own_host(const struct server *server, struct evhttp_request *request)
{
	const struct evkeyvalq *headers = evhttp_request_get_input_headers(request);
	const struct evkeyval *header;
	size_t n = 0;

	TAILQ_FOREACH(header, headers, next)
	{
		if (evutil_ascii_strcasecmp(header->key, "host") != 0)
			continue;
		if (n++ || !is_own_host(server, header->value))
			return false;
	}
	return n == 1;
}

/* Compares in constant time. */
static bool is_token(const struct server *server, const char *text)
{
	unsigned difference = 0;

	if (strnlen(text, TOKEN_LETTERS) < TOKEN_LETTERS)
		return false;
	for (size_t i = 0; i < TOKEN_LETTERS; i++)
		difference |= (unsigned char)text[i] ^ (unsigned char)server->token[i];
	return !difference;
}

/* Returns the rest of "/TOKEN/REST"; NULL without the token. */
static const char *after_token(const struct server *server, const char *address)
{
	if (*address != '/' || !is_token(server, address + 1) || address[1 + TOKEN_LETTERS] != '/')
		return NULL;
	return address + TOKEN_LETTERS + 2;
}

static void answer(struct server *server, struct evhttp_request *request, const char *rest)
{
	struct serve_request what;
	char *path = torsh_need(strdup(rest)), *query = strchr(path, '?');
	bool is_known;

	if (query)
		*query++ = '\0';
	is_known = torsh_serve_parse(&what, path, query);
	free(path);
	if (!is_known)
		refuse(request, HTTP_NOTFOUND, "there is no such thing here");
	else if (what.what == SERVE_PAGE)
		send_page(server, request);
	else
		torsh_answers_add(&server->answers, &what, request);
}

static void receive(struct evhttp_request *request, void *context)
{
	struct server *server = context;
	const char *address = evhttp_request_get_uri(request), *rest;

	if (!has_own_host(server, request)) {
		refuse(request, 403, "this server has another name");
		return;
	}
	if (evhttp_request_get_command(request) != EVHTTP_REQ_GET) {
		evhttp_add_header(evhttp_request_get_output_headers(request), "Allow", "GET");
		refuse(request, HTTP_BADMETHOD, "only GET is understood");
		return;
	}
	rest = after_token(server, address);
	if (rest)
		answer(server, request, rest);
	else
		refuse(request, 403, "the address has not the token that torsh serve printed");
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void on_signal(evutil_socket_t number, short what, void *context)
{
	struct server *server = context;

	(void)what;
	if (number == SIGCHLD)
		torsh_answers_reap(&server->answers);
	else
		event_base_loopbreak(server->base);
}

static void accept_again(evutil_socket_t fd, short what, void *context)
{
	struct server *server = context;

	(void)fd;
	(void)what;
	for (size_t i = 0; i < N_ADDRESSES; i++) {
		if (server->bound[i])
			evconnlistener_enable(evhttp_bound_socket_get_listener(server->bound[i]));
	}
}

/* All connections are in use: further ones wait in the kernel's queue. */
static void accept_failed(struct evconnlistener *listener, void *context)
{
	static const struct timeval later = {.tv_usec = RETRY_US};

	(void)context;
	evconnlistener_disable(listener);
	event_add(running->retry, &later);
}

/* libevent's warnings concern one connection, which gets an error reply anyway. */
static void ignore_log(int severity, const char *text)
{
	(void)severity;
	(void)text;
}

static void handle_signals(struct server *server)
{
	static const int numbers[SIGNALS] = {SIGINT, SIGTERM, SIGCHLD};

	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < SIGNALS; i++) {
		server->signals[i] =
			torsh_need(evsignal_new(server->base, numbers[i], on_signal, server));
		event_add(server->signals[i], NULL);
	}
	server->retry = torsh_need(evtimer_new(server->base, accept_again, server));
}

/* Limits the descriptors, so that accept fails while CONNECTIONS_MAX connections are open. */
static void limit_connections(struct server *server)
{
	struct rlimit limit;
	int next = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);

	getrlimit(RLIMIT_NOFILE, &limit);
	server->answers.files = limit;
	if (next < 0)
		return;
	close(next);
	if (limit.rlim_cur > (rlim_t)next + CONNECTIONS_MAX)
		limit.rlim_cur = (rlim_t)next + CONNECTIONS_MAX;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* ---- begin and end --------------------------------------------------------------------------- */

static void make_token(struct server *server)
{
	unsigned char bytes[TOKEN_BYTES];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		torsh_die("the system has no random numbers: %s", strerror(errno));
	for (size_t i = 0; i < TOKEN_BYTES; i++)
		snprintf(server->token + 2 * i, 3, "%02x", bytes[i]);
}

static struct evhttp_bound_socket *bind_one(struct server *server, const char *address)
{
	struct evhttp_bound_socket *bound =
		evhttp_bind_socket_with_handle(server->http, address, server->port);

	if (bound)
		evconnlistener_set_error_cb(evhttp_bound_socket_get_listener(bound), accept_failed);
	return bound;
}

static void bind_both(struct server *server)
{
	struct sockaddr_in bound;
	socklen_t n = sizeof(bound);

	server->bound[0] = bind_one(server, "127.0.0.1");
	if (!server->bound[0])
		torsh_die("port %u of 127.0.0.1 cannot be used: %s", server->port, strerror(errno));
	if (getsockname(evhttp_bound_socket_get_fd(server->bound[0]), (struct sockaddr *)&bound,
			&n) < 0)
		torsh_die("getsockname: %s", strerror(errno));
	server->port = ntohs(bound.sin_port);
	/* IPv6 is optional: it may be missing, or another program may use the port there. */
	server->bound[1] = bind_one(server, "::1");
}

static void make_page(struct server *server)
{
	FILE *out = torsh_need(open_memstream(&server->page, &server->page_bytes));
	size_t n;
	const char *policy = torsh_html_policy(&n);

	torsh_html_put_empty(out);
	if (fclose(out) != 0)
		torsh_die("out of memory");
	server->policy =
		torsh_need_text("connect-src 'self'; frame-ancestors 'none'; %.*s", (int)n, policy);
}

struct server *torsh_server_create(struct serve_data *data, uint16_t port)
{
	struct server *server = torsh_need(calloc(1, sizeof(*server)));

	server->answers =
		(struct answers){.data = data, .document = -1, .send = send_file, .refuse = refuse};
	server->port = port;
	event_set_log_callback(ignore_log);
	server->base = torsh_need(event_base_new());
	server->http = torsh_need(evhttp_new(server->base));
	evhttp_set_max_headers_size(server->http, REQUEST_BYTES_MAX);
	evhttp_set_max_body_size(server->http, 0);
	evhttp_set_timeout(server->http, WAIT_S);
	evhttp_set_allowed_methods(server->http, ALL_METHODS);
	evhttp_set_gencb(server->http, receive, server);
	make_token(server);
	make_page(server);
	bind_both(server);
	server->address = torsh_need_text("http://127.0.0.1:%u/%s/", server->port, server->token);
	running = server;
	handle_signals(server);
	return server;
}

const char *torsh_server_address(const struct server *server)
{
	return server->address;
}

void torsh_server_run(struct server *server)
{
	limit_connections(server);
	event_base_dispatch(server->base);
}

void torsh_server_destroy(struct server *server)
{
	torsh_answers_end(&server->answers);
	evhttp_free(server->http);
	for (size_t i = 0; i < SIGNALS; i++)
		event_free(server->signals[i]);
	event_free(server->retry);
	event_base_free(server->base);
	free(server->address);
	free(server->policy);
	free(server->page);
	free(server);
	running = NULL;
}
