/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/threads/control_state.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/base/memory.h"
#include "tools/terminal/terminal.h"
#include "tools/writer/input/process_info.h"

static void put_messages(FILE *out, int fd)
{
	char bytes[4096];
	ssize_t n;
	off_t at = 0;

	while (fd >= 0 && (n = pread(fd, bytes, sizeof(bytes), at)) > 0) {
		fwrite(bytes, 1, (size_t)n, out);
		at += n;
	}
}

/* Let the first process continue. */
static void reply_to_exit(struct control *control)
{
	const struct control_options *options = control->options;
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	if (out) {
		fputs(control->summary, out);
		put_messages(out, control->messages_fd);
		if (options->export_early && !control->has_exported && !options->has_summary)
			fputs("torsh: not all that was to be exported could be written: `torsh export` prints the reason\n",
			      out);
		fclose(out);
	}
	if (text)
		torsh_terminal_clean(text);
	torsh_drain_reply_to_exit(control->drain, text ? text : "");
	free(text);
	if (control->messages_fd >= 0)
		close(control->messages_fd);
	control->messages_fd = -1;
}

void torsh_control_end_export(struct control *control)
{
	int status = -1;

	while (waitpid(control->export_pid, &status, 0) < 0 && errno == EINTR)
		;
	control->has_exported = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	control->export_pid = 0;
	epoll_ctl(control->epoll_fd, EPOLL_CTL_DEL, control->export.fd, NULL);
	close(control->export.fd);
	control->export.fd = -1;
	reply_to_exit(control);
}

void torsh_control_stop_export(struct control *control)
{
	if (control->export_pid <= 0)
		return;
	kill(-control->export_pid, SIGKILL);
	torsh_control_end_export(control);
}

void torsh_control_begin_exit_reply(struct control *control, const struct queued_request *queued)
{
	const struct control_options *options = control->options;

	control->summary = torsh_memory_text(queued->text ? queued->text : "");
	if (!options->export_early) {
		reply_to_exit(control);
		return;
	}
	control->messages_fd = memfd_create("torsh-messages", MFD_CLOEXEC);
	control->export_pid = options->export_early(options->context, control->messages_fd);
	control->export.fd = control->export_pid > 0 ? torsh_process_open(control->export_pid) : -1;
	if (control->export.fd >= 0 && !torsh_control_watch(control, &control->export))
		return;
	if (control->export_pid > 0)
		torsh_control_stop_export(control);
	else
		reply_to_exit(control);
}
