/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/serve/answers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/base/die.h"

#define SENTENCE_BYTES 1000
#define STATUS_GONE 410
#define STATUS_FAILED 500

struct answer {
	struct answer *next;
	struct serve_request what;
	struct serve_stamp stamp; /* of the file when the child process began */
	struct evhttp_request *request;
	pid_t pid; /* 0: it waits for a process */
	int out, errors;
};

/* ---- in the process that makes the answer ---------------------------------------------------- */

static void reset_signals(void)
{
	static const int handled[] = {SIGINT, SIGTERM, SIGCHLD, SIGPIPE};
	sigset_t none;

	for (size_t i = 0; i < sizeof(handled) / sizeof(*handled); i++)
		signal(handled[i], SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Otherwise a connection that the server closes would stay open here. */
static void close_sockets(void)
{
	DIR *directory = opendir("/proc/self/fd");
	const struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		int fd = atoi(entry->d_name);
		struct stat status;

		if (fd > STDERR_FILENO && fd != dirfd(directory) && fstat(fd, &status) == 0 &&
		    S_ISSOCK(status.st_mode))
			close(fd);
	}
	if (directory)
		closedir(directory);
}

_Noreturn static void make(const struct answers *answers, const struct answer *answer, pid_t server)
{
	int status;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != server)
		_exit(TORSH_EXIT_UNREADABLE);
	reset_signals();
	setrlimit(RLIMIT_NOFILE, &answers->files);
	close_sockets();
	dup2(answer->out, STDOUT_FILENO);
	dup2(answer->errors, STDERR_FILENO);
	status = torsh_serve_write(answers->data, &answer->what);
	_exit(fflush(NULL) == 0 ? status : TORSH_EXIT_UNREADABLE);
}

/* ---- in the server --------------------------------------------------------------------------- */

static void drop(struct answer *answer)
{
	if (answer->out >= 0)
		close(answer->out);
	if (answer->errors >= 0)
		close(answer->errors);
	free(answer);
}

/* Remove an answer from its list. */
static void take_out(struct answers *answers, const struct answer *answer)
{
	struct answer **at = &answers->first;

	while (*at != answer)
		at = &(*at)->next;
	*at = answer->next;
}

static bool begin(struct answers *answers, struct answer *answer)
{
	pid_t server = getpid();

	torsh_serve_stamp(answers->data, &answer->stamp);
	answer->out = memfd_create("torsh answer", MFD_CLOEXEC);
	answer->errors = memfd_create("torsh errors", MFD_CLOEXEC);
	if (answer->out < 0 || answer->errors < 0)
		return false;
	fflush(NULL);
	answer->pid = fork();
	if (answer->pid == 0)
		make(answers, answer, server);
	if (answer->pid < 0)
		return false;
	answers->n_running++;
	return true;
}

static void begin_next(struct answers *answers)
{
	struct answer *answer = answers->first, *next;

	for (; answer && answers->n_running < ANSWERS_AT_ONCE; answer = next) {
		next = answer->next;
		if (answer->pid)
			continue;
		if (begin(answers, answer))
			continue;
		take_out(answers, answer);
		answers->refuse(answer->request, STATUS_FAILED, "no process can be started");
		answer->pid = 0;
		drop(answer);
	}
}

/* Read the last message of the process, or a sentence that it printed none. */
static void read_sentence(const struct answer *answer, int status, char *sentence)
{
	ssize_t n = pread(answer->errors, sentence, SENTENCE_BYTES - 1, 0);

	sentence[n > 0 ? n : 0] = '\0';
	if (n <= 0 && WIFSIGNALED(status))
		snprintf(sentence, SENTENCE_BYTES, "the process that reads the recording died: %s",
			 strsignal(WTERMSIG(status)));
	else if (n <= 0)
		snprintf(sentence, SENTENCE_BYTES, "the recording cannot be read");
}

static void keep_document(struct answers *answers, const struct answer *answer)
{
	if (answer->what.what != SERVE_DOCUMENT)
		return;
	if (answers->document >= 0)
		close(answers->document);
	answers->document = fcntl(answer->out, F_DUPFD_CLOEXEC, 0);
	answers->document_stamp = answer->stamp;
}

static void finish(struct answers *answers, struct answer *answer, int status)
{
	char sentence[SENTENCE_BYTES];
	struct serve_stamp now;

	answers->n_running--;
	take_out(answers, answer);
	if (WIFEXITED(status) && WEXITSTATUS(status) == TORSH_EXIT_DONE) {
		keep_document(answers, answer);
		answers->send(answer->request, answer->out);
		answer->out = -1;
	} else {
		read_sentence(answer, status, sentence);
		answers->refuse(answer->request,
				torsh_serve_stamp(answers->data, &now) ? STATUS_FAILED
								       : STATUS_GONE,
				sentence);
	}
	drop(answer);
}

void torsh_answers_add(struct answers *answers, const struct serve_request *what,
		       struct evhttp_request *request)
{
	struct answer *answer, **last = &answers->first;
	struct serve_stamp now;

	if (what->what == SERVE_DOCUMENT && answers->document >= 0 &&
	    torsh_serve_stamp(answers->data, &now) &&
	    torsh_serve_is_same(&now, &answers->document_stamp)) {
		answers->send(request, fcntl(answers->document, F_DUPFD_CLOEXEC, 0));
		return;
	}
	answer = torsh_need(calloc(1, sizeof(*answer)));
	*answer = (struct answer){.what = *what, .request = request, .out = -1, .errors = -1};
	while (*last)
		last = &(*last)->next;
	*last = answer;
	begin_next(answers);
}

void torsh_answers_reap(struct answers *answers)
{
	struct answer *next;
	int status;

	for (struct answer *answer = answers->first; answer; answer = next) {
		next = answer->next;
		if (answer->pid && waitpid(answer->pid, &status, WNOHANG) == answer->pid)
			finish(answers, answer, status);
	}
	begin_next(answers);
}

void torsh_answers_end(struct answers *answers)
{
	while (answers->first) {
		struct answer *answer = answers->first;

		answers->first = answer->next;
		if (answer->pid) {
			kill(answer->pid, SIGKILL);
			waitpid(answer->pid, NULL, 0);
		}
		drop(answer);
	}
	if (answers->document >= 0)
		close(answers->document);
}
