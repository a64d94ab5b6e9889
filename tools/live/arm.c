/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Arms dormant processes (agent/wire/dormant_page.h): a word is stored in the page that each of
 * them maps. Nothing is traced, no signal is sent, and no code runs in them but their own.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/wire/dormant_page.h"
#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/live/live.h"

#define LOOK_EVERY_NS 10000000
#define LOOKS_MAX 200u /* 2 s */

/* The file of a page in the process's maps; the caller frees it. NULL: none. */
static char *find_file(uint32_t pid, uint64_t *inode)
{
	char *maps = torsh_need_text("/proc/%" PRIu32 "/maps", pid), *line = NULL, *file = NULL;
	FILE *lines = fopen(maps, "re");
	size_t n_room = 0;

	while (lines && !file && getline(&line, &n_room, lines) > 0) {
		char *path = strchr(line, '/');

		line[strcspn(line, "\n")] = '\0';
		if (path && strstr(path, "/" DORMANT_FILE) &&
		    sscanf(line, "%*s rw-s %*s %*s %" SCNu64, inode) == 1)
			file = torsh_need_text("/proc/%" PRIu32 "/root%s", pid, path);
	}
	if (lines)
		fclose(lines);
	free(line);
	free(maps);
	return file;
}

static bool is_page(int fd, uint64_t inode)
{
	struct stat status;

	return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_ino == inode &&
	       status.st_size == DORMANT_BYTES && (status.st_uid == geteuid() || geteuid() == 0);
}

/* Remove the pages of processes of this user and PID namespace that were killed. */
static void remove_stale(const char *file)
{
	int n_directory = (int)(strrchr(file, '/') - file);
	char *directory = torsh_need_text("%.*s", n_directory, file);
	DIR *entries = opendir(directory);
	struct dirent *entry;
	struct stat space;

	while (entries && !stat("/proc/self/ns/pid", &space) && (entry = readdir(entries))) {
		uint64_t user, inode;
		int pid;
		char *path;

		if (sscanf(entry->d_name, DORMANT_FILE "%" SCNu64 "-%" SCNu64 "-%d", &user, &inode,
			   &pid) != 3 ||
		    user != geteuid() || inode != space.st_ino || kill(pid, 0) == 0 ||
		    errno != ESRCH)
			continue;
		path = torsh_need_text("%s/%s", directory, entry->d_name);
		unlink(path);
		free(path);
	}
	if (entries)
		closedir(entries);
	free(directory);
}

/*
 * Map the process's page. Returns NULL if it is not dormant, or belongs to another user.
 * is_cleaning: remove the stale pages beside it.
 */
static struct dormant_page *map_page(uint32_t pid, bool is_cleaning)
{
	struct dormant_page *page = MAP_FAILED;
	uint64_t inode = 0;
	char *file = find_file(pid, &inode);
	int fd = file ? open(file, O_RDWR | O_NOFOLLOW | O_CLOEXEC) : -1;

	if (fd >= 0 && is_page(fd, inode))
		page = mmap(NULL, DORMANT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	if (page != MAP_FAILED && is_cleaning)
		remove_stale(file);
	free(file);
	if (page == MAP_FAILED)
		return NULL;
	if (page->magic == DORMANT_MAGIC && page->version == DORMANT_VERSION)
		return page;
	munmap(page, DORMANT_BYTES);
	return NULL;
}

static uint32_t state_of(struct dormant_page *page)
{
	/* Pairs with the release in torsh_dormant_started: session is complete. */
	return atomic_load_explicit(&page->state, memory_order_acquire);
}

static void arm(struct dormant_page *page, const char *session)
{
	if (session && strlen(session) < sizeof(page->join))
		strcpy(page->join, session);
	/* Pairs with the acquire in torsh_dormant_is_armed. */
	atomic_store_explicit(&page->pause, DORMANT_ARMED, memory_order_release);
}

/* The process may make no call: the wait is bounded. */
static uint32_t await_start(struct dormant_page *page)
{
	for (uint32_t i = 0; i < LOOKS_MAX && state_of(page) < DORMANT_STARTED; i++)
		nanosleep(&(struct timespec){.tv_nsec = LOOK_EVERY_NS}, NULL);
	return state_of(page);
}

void torsh_live_rest(uint32_t pid)
{
	struct dormant_page *page = map_page(pid, false);

	if (!page)
		return;
	atomic_store_explicit(&page->state, DORMANT_WAITS, memory_order_relaxed);
	munmap(page, DORMANT_BYTES);
}

struct family {
	uint32_t *pids; /* the first is the oldest; each comes after its parent */
	size_t n, n_room;
};

static uint32_t parent_of(uint32_t pid)
{
	char *path = torsh_need_text("/proc/%" PRIu32 "/status", pid), *line = NULL;
	FILE *lines = fopen(path, "re");
	uint32_t parent = 0;
	size_t n_room = 0;

	while (lines && !parent && getline(&line, &n_room, lines) > 0)
		sscanf(line, "PPid: %" SCNu32, &parent);
	if (lines)
		fclose(lines);
	free(line);
	free(path);
	return parent;
}

static void add_children(struct family *family, uint32_t parent)
{
	DIR *directory = opendir("/proc");
	struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		uint32_t pid = (uint32_t)strtoul(entry->d_name, NULL, 10);

		if (!pid || parent_of(pid) != parent)
			continue;
		family->pids = torsh_array_reserve(family->pids, family->n, &family->n_room,
						   sizeof(*family->pids));
		family->pids[family->n++] = pid;
	}
	if (directory)
		closedir(directory);
}

/* Arm the dormant descendants, in the session of the oldest if that has begun. */
static uint32_t arm_descendants(uint32_t pid, const char *session)
{
	struct family family = {0};
	uint32_t n_armed = 0;

	add_children(&family, pid);
	for (size_t i = 0; i < family.n; i++) {
		struct dormant_page *page = map_page(family.pids[i], true);

		add_children(&family, family.pids[i]);
		if (!page)
			continue;
		/* Else it is in a session, or the page is that of its parent, which is. */
		if (state_of(page) < DORMANT_STARTED) {
			arm(page, session);
			n_armed++;
		}
		munmap(page, DORMANT_BYTES);
	}
	free(family.pids);
	return n_armed;
}

int torsh_live_arm(uint32_t pid, struct live_armed *armed)
{
	struct dormant_page *page = map_page(pid, true);
	char session[DORMANT_SOCKET_MAX] = "";
	uint32_t state;

	*armed = (struct live_armed){0};
	if (!page)
		return -ESRCH;
	arm(page, NULL);
	state = await_start(page);
	if (state == DORMANT_STARTED)
		memcpy(session, page->session, sizeof(session) - 1);
	munmap(page, DORMANT_BYTES);
	if (state == DORMANT_FAILED)
		return -ECANCELED;
	armed->has_started = state == DORMANT_STARTED;
	armed->n_descendants = arm_descendants(pid, *session ? session : NULL);
	return 0;
}

/* The name of the program's file, as its command line has it; the caller frees it. */
static char *program_of(uint32_t pid)
{
	char *path = torsh_need_text("/proc/%" PRIu32 "/cmdline", pid), *line = NULL, *slash;
	FILE *words = fopen(path, "re");
	size_t n_room = 0;

	if (!words || getdelim(&line, &n_room, '\0', words) <= 0) {
		free(line);
		line = torsh_need_text("?");
	}
	if (words)
		fclose(words);
	free(path);
	slash = strrchr(line, '/');
	if (slash && slash[1])
		memmove(line, slash + 1, strlen(slash));
	return line;
}

static void add_dormant(struct live_dormant_list *list, uint32_t pid)
{
	struct dormant_page *page = map_page(pid, false);

	if (!page)
		return;
	/* Once it has started it is in a session. */
	if (state_of(page) < DORMANT_STARTED) {
		list->items = torsh_array_reserve(list->items, list->n, &list->n_room,
						  sizeof(*list->items));
		list->items[list->n++] = (struct live_dormant){
			.pid = pid,
			.program = program_of(pid),
			.is_armed = atomic_load_explicit(&page->pause, memory_order_relaxed) ==
				    DORMANT_ARMED,
		};
	}
	munmap(page, DORMANT_BYTES);
}

static int compare_dormant(const void *a, const void *b)
{
	const struct live_dormant *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

void torsh_live_dormant_look(struct live_dormant_list *list)
{
	DIR *directory = opendir("/proc");
	struct dirent *entry;

	*list = (struct live_dormant_list){0};
	while (directory && (entry = readdir(directory))) {
		uint32_t pid = (uint32_t)strtoul(entry->d_name, NULL, 10);

		if (pid)
			add_dormant(list, pid);
	}
	if (directory)
		closedir(directory);
	if (list->n)
		qsort(list->items, list->n, sizeof(*list->items), compare_dormant);
}

void torsh_live_dormant_free(struct live_dormant_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->items[i].program);
	free(list->items);
	*list = (struct live_dormant_list){0};
}
