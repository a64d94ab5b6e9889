/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/serve/open_browser.h"

#include <errno.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/base/die.h"

extern char **environ;

static char *redirect; /* the path of the file; NULL: there is none */

static bool has_display(void)
{
	const char *x = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");

	return (x && *x) || (wayland && *wayland);
}

/* The file is readable by this user only. */
static bool write_redirect(const char *address)
{
	const char *folder = getenv("XDG_RUNTIME_DIR");
	FILE *file;
	int fd;

	redirect =
		torsh_need_text("%s/torsh-serve-XXXXXX.html", folder && *folder ? folder : "/tmp");
	fd = mkstemps(redirect, sizeof(".html") - 1);
	file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!file)
		return false;
	fprintf(file,
		"<!DOCTYPE html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" "
		"content=\"0; url=%s\"><title>torsh</title>\n",
		address);
	return fclose(file) == 0;
}

void torsh_browser_open(const char *address)
{
	char *arguments[] = {"xdg-open", NULL, NULL};
	pid_t pid;
	int rc;

	if (!has_display()) {
		torsh_warn("no browser is opened: there is no display (DISPLAY, WAYLAND_DISPLAY)");
		return;
	}
	if (!write_redirect(address)) {
		torsh_warn("no browser is opened: %s: %s", redirect, strerror(errno));
		return;
	}
	arguments[1] = redirect;
	rc = posix_spawnp(&pid, arguments[0], NULL, NULL, arguments, environ);
	if (rc)
		torsh_warn("no browser is opened: xdg-open: %s", strerror(rc));
}

void torsh_browser_close(void)
{
	if (redirect)
		unlink(redirect);
	free(redirect);
	redirect = NULL;
}
