# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A server of the standard library, without a word of torsh: served_by_stdlib.py SOCKET. GET /N answers after N forwards."""

import http.server
import socket
import socketserver
import sys

import served


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        served.serve(int(self.path[1:]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    address_family = socket.AF_UNIX
    daemon_threads = True


Server(sys.argv[1], Handler).serve_forever()
