/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * An HTTP server for one recording: on 127.0.0.1 and ::1 only, for requests with the token in the
 * address and this server as Host, so that no page of another site can reach it under another
 * name. One thread; libevent reads and writes. Requests, connections and waits are bounded.
 */
#ifndef TORSH_COMMAND_SERVE_SERVER_H
#define TORSH_COMMAND_SERVE_SERVER_H

#include <stdint.h>

#include "tools/command/serve/serve_data.h"

struct server;

/* Bind both addresses to a port, 0: any free one. Ends the program with a message on failure. */
struct server *torsh_server_create(struct serve_data *data, uint16_t port);

/* Returns the address of the page, with the token. */
const char *torsh_server_address(const struct server *server);

/* Serve until SIGINT or SIGTERM. */
void torsh_server_run(struct server *server);

void torsh_server_destroy(struct server *server);

#endif
