/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/libc/loop_sockets.h"

#include <stddef.h>
#include <string.h>
#include <sys/uio.h>

#include "shim/find_text.h"
#include "shim/hooks.h"
#include "shim/loader/rebinding.h"

#define LIBRARY "/uvloop/"

bool torsh_loop_sockets_on;

/* What the objects called: the C library's, or the wrapper that records waits in it. */
static struct {
	ssize_t (*read)(int fd, void *data, size_t n);
	ssize_t (*write)(int fd, const void *data, size_t n);
	ssize_t (*writev)(int fd, const struct iovec *parts, int n);
} next;

static ssize_t read_socket(int fd, void *data, size_t n)
{
	ssize_t got = next.read(fd, data, n);

	torsh_http_received(fd, data, got, true);
	return got;
}

static ssize_t write_socket(int fd, const void *data, size_t n)
{
	ssize_t sent = next.write(fd, data, n);

	torsh_http_sent(fd, data, sent);
	return sent;
}

static ssize_t write_parts(int fd, const struct iovec *parts, int n)
{
	ssize_t sent = next.writev(fd, parts, n), left = sent;

	for (int i = 0; i < n && left > 0; i++) {
		ssize_t n_part =
			left < (ssize_t)parts[i].iov_len ? left : (ssize_t)parts[i].iov_len;

		torsh_http_sent(fd, parts[i].iov_base, n_part);
		left -= n_part;
	}
	return sent;
}

static const struct {
	char name[8];
	void *wrapper, *next;
} functions[] = {
	{"read", (void *)read_socket, &next.read},
	{"write", (void *)write_socket, &next.write},
	{"writev", (void *)write_parts, &next.writev},
};

static int find_function(const char *name)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
		if (!strcmp(functions[i].name, name))
			return (int)i;
	return -1;
}

/* Extension modules are bound when they are opened. */
static void *not_bound(int i)
{
	(void)i;
	return NULL;
}

static void *wrapper_of(int i, void *found)
{
	if (found != functions[i].wrapper)
		memcpy(functions[i].next, &found, sizeof(found));
	return functions[i].wrapper;
}

static bool is_another(const struct torsh_elf_image *image, const void *dynamic, const char *path)
{
	(void)image;
	(void)dynamic;
	return !torsh_find_text(path, LIBRARY);
}

static struct rebinding rebinding = {
	.bindings = {.find = find_function,
		     .bound = not_bound,
		     .instead = wrapper_of,
		     .skips = is_another},
	.library = LIBRARY,
};

void torsh_loop_sockets_start(void)
{
	torsh_loop_sockets_on = true;
	torsh_rebinding_start(&rebinding);
}

void torsh_loop_sockets_recheck(void)
{
	torsh_rebinding_recheck(&rebinding);
}
