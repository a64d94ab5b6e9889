/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/image/waiting_thread.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE_BYTES 4096u /* the smallest: a mapping begins at a multiple */
#define TEXT_BYTES 4096u

/* Read a file of the thread as text. Returns false if there is none. */
static bool read_file(pid_t tid, const char *name, char *text)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, TEXT_BYTES - 1);
	close(fd);
	if (n < 0)
		return false;
	text[n] = '\0';
	return true;
}

bool torsh_waiting_thread_waits(pid_t tid, const struct waiting_thread *waiting)
{
	char text[TEXT_BYTES];
	uint64_t word;
	long number;

	if (!read_file(tid, "syscall", text))
		return true;
	if (sscanf(text, "%ld %" SCNx64, &number, &word) != 2 || number != SYS_futex)
		return false;
	word %= PAGE_BYTES;
	return word == waiting->words[0] || word == waiting->words[1];
}

static bool stops(int signal)
{
	return !signal || signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN ||
	       signal == SIGTTOU;
}

bool torsh_waiting_thread_puts_off(pid_t tid, int signal)
{
	char text[TEXT_BYTES];
	const char *at;

	if (stops(signal))
		return true;
	at = read_file(tid, "status", text) ? strstr(text, "\nSigCgt:") : NULL;
	return at && strtoull(at + strlen("\nSigCgt:"), NULL, 16) >> (signal - 1) & 1;
}
