/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/session/dormant.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/process/text_buffer.h"
#include "agent/session/session.h"
#include "agent/wire/dormant_page.h"
#include "shim/pause.h"
#include "shim/sys.h"

_Static_assert(DORMANT_SLEEPS == (int)PAUSE_FOR_GOOD && DORMANT_ARMED == (int)PAUSE_NONE,
	       "hooks read it as a pause");
_Static_assert(DORMANT_SOCKET_MAX == SESSION_SOCKET_MAX, "a session's socket fits");

#define NUMBERS_MAX 44u /* bytes of the numbers in a name */

static struct dormant_page *page; /* NULL: never dormant */
static char file[PATH_MAX]; /* of the page; "": there is none */
static size_t n_directory; /* bytes of file up to its name */

/* Processes of several PID namespaces may share a directory. 0: unknown. */
static uint64_t pid_namespace(void)
{
	struct stat status;
	long error = TORSH_SYS(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/pid", &status, 0, 0, 0);

	return error ? 0 : (uint64_t)status.st_ino;
}

static void name_file(void)
{
	struct text text = {.bytes = file, .capacity = sizeof(file), .length = n_directory};

	file[n_directory] = '\0';
	torsh_text_put(&text, DORMANT_FILE);
	torsh_text_put_number(&text, (uint64_t)getuid());
	torsh_text_put(&text, "-");
	torsh_text_put_number(&text, pid_namespace());
	torsh_text_put(&text, "-");
	torsh_text_put_number(&text, (uint64_t)torsh_sys_getpid());
}

/* A file of this name is of a process that has ended. Returns the descriptor or -errno. */
static long open_file(void)
{
	const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	long fd = TORSH_SYS(SYS_openat, AT_FDCWD, file, flags, 0600, 0, 0);

	if (fd != -EEXIST)
		return fd;
	TORSH_SYS(SYS_unlinkat, AT_FDCWD, file, 0, 0, 0, 0);
	return TORSH_SYS(SYS_openat, AT_FDCWD, file, flags, 0600, 0, 0);
}

static void remove_file(void)
{
	if (*file)
		TORSH_SYS(SYS_unlinkat, AT_FDCWD, file, 0, 0, 0, 0);
	*file = '\0';
}

/* Written, not only extended: a full disk refuses it here, not at the first access. */
static int fill(long fd, enum dormant_pause pause)
{
	struct dormant_page first = {
		.magic = DORMANT_MAGIC,
		.version = DORMANT_VERSION,
		.pid = (uint32_t)torsh_sys_getpid(),
		.state = page ? atomic_load(&page->state) : DORMANT_WAITS,
		.pause = pause,
	};
	long n = TORSH_SYS(SYS_pwrite64, fd, &first, sizeof(first), 0, 0, 0);

	if (n < 0)
		return (int)n;
	return n == sizeof(first) ? (int)TORSH_SYS(SYS_ftruncate, fd, DORMANT_BYTES, 0, 0, 0, 0)
				  : -ENOSPC;
}

/* Map a file of this name in the place of the page, if there is one already. */
static int make_page(enum dormant_pause pause)
{
	long fd;
	void *mapped;
	int result;

	name_file();
	fd = open_file();
	if (fd < 0) {
		*file = '\0';
		return (int)fd;
	}
	result = fill(fd, pause);
	if (!result) {
		mapped = torsh_sys_mmap(page, DORMANT_BYTES, PROT_READ | PROT_WRITE,
					MAP_SHARED | (page ? MAP_FIXED : 0), (int)fd, 0);
		if (torsh_sys_failed((long)mapped))
			result = (int)(long)mapped;
		else
			page = mapped;
	}
	TORSH_SYS(SYS_close, fd, 0, 0, 0, 0, 0);
	if (result)
		remove_file();
	return result;
}

int torsh_dormant_begin(void)
{
	const char *bases[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp", "/dev/shm",
			       "/var/tmp"};
	int result = -ENOENT;

	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		struct text text = TEXT_IN(file);

		if (!bases[i] || *bases[i] != '/' ||
		    strlen(bases[i]) + sizeof("/" DORMANT_FILE) + NUMBERS_MAX > sizeof(file))
			continue;
		torsh_text_put(&text, bases[i]);
		torsh_text_put(&text, "/");
		n_directory = text.length;
		result = make_page(DORMANT_SLEEPS);
		if (!result)
			break;
	}
	if (!result)
		atomic_store_explicit(&torsh_pause, &page->pause, memory_order_relaxed);
	return result;
}

static void make_again(void)
{
	make_page((enum dormant_pause)atomic_load_explicit(&page->pause, memory_order_relaxed));
}

void torsh_dormant_forked(void)
{
	if (page)
		make_again();
}

/* After vfork the parent's file is not the child's. */
static bool is_own(void)
{
	return page && page->pid == (uint32_t)torsh_sys_getpid();
}

int torsh_dormant_rest(void)
{
	int result = 0;

	if (!page)
		result = torsh_dormant_begin();
	else if (!is_own())
		result = make_page(DORMANT_SLEEPS);
	if (result)
		return result;
	atomic_store_explicit(&page->state, DORMANT_WAITS, memory_order_relaxed);
	atomic_store_explicit(&torsh_pause, &page->pause, memory_order_relaxed);
	return 0;
}

void torsh_dormant_end(void)
{
	if (is_own())
		remove_file();
}

void torsh_dormant_goes_on(void)
{
	if (is_own() && !*file)
		make_again();
}

void torsh_dormant_arm(void)
{
	if (is_own())
		atomic_store_explicit(&page->pause, DORMANT_ARMED, memory_order_release);
}

bool torsh_dormant_is_armed(void)
{
	return page && atomic_load_explicit(&page->pause, memory_order_acquire) == DORMANT_ARMED &&
	       is_own();
}

const char *torsh_dormant_session(void)
{
	page->join[sizeof(page->join) - 1] = '\0';
	return *page->join ? page->join : NULL;
}

void torsh_dormant_starts(void)
{
	atomic_store_explicit(&page->state, DORMANT_STARTS, memory_order_relaxed);
}

void torsh_dormant_started(const char *session)
{
	if (session)
		strcpy(page->session, session);
	*page->join = '\0';
	atomic_store_explicit(&page->pause, DORMANT_SLEEPS, memory_order_relaxed);
	atomic_store_explicit(&page->state, session ? DORMANT_STARTED : DORMANT_FAILED,
			      memory_order_release);
	if (!session)
		torsh_dormant_end();
}
