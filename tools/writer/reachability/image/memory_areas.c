/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/image/memory_areas.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"

/* Of VmFlags: what the agent requests for its pages, the last two together. */
#define WIPED_ON_FORK " wf"
#define NOT_RESERVED " nr"
#define NOT_DUMPED " dd"

/* Files of devices, apart from what maps anonymous memory for all processes of a fork. */
static bool is_device(const char *path)
{
	return !strncmp(path, "/dev/", 5) && strncmp(path, "/dev/shm/", 9) != 0 &&
	       strncmp(path, "/dev/zero", 9) != 0;
}

static bool ends_with(const char *line, const char *file)
{
	size_t n = strcspn(line, "\n"), n_file = strlen(file);

	return n >= n_file && !strncmp(line + n - n_file, file, n_file);
}

/* Its data that is not in the file follows what is. */
static bool is_rest_of_agent(const struct memory_areas *areas, const struct memory_area *area)
{
	const struct memory_area *last = areas->n ? &areas->items[areas->n - 1] : NULL;

	return last && last->is_agents && last->is_file && last->is_writable && !area->is_file &&
	       area->begin == last->end;
}

static void add_area(struct memory_areas *areas, const struct memory_area *area)
{
	areas->items = torsh_array_reserve(areas->items, areas->n, &areas->capacity,
					   sizeof(*areas->items));
	areas->items[areas->n++] = *area;
}

/* Data of a module that are not in its file follow those that are. */
static char *path_of(const struct memory_areas *areas, const struct memory_area *area,
		     const char *line)
{
	const struct memory_area *last = areas->n ? &areas->items[areas->n - 1] : NULL;

	if (area->is_file)
		return strndup(line, strcspn(line, "\n"));
	if (last && last->is_file && last->is_writable && !last->is_shared &&
	    last->end == area->begin && !*line)
		return strdup(last->path);
	return NULL;
}

/* Add a line's KiB to the sum of bytes if it has that name. */
static bool take_bytes(const char *line, const char *name, uint64_t *bytes)
{
	size_t n = strlen(name);

	if (strncmp(line, name, n) != 0)
		return false;
	*bytes += strtoull(line + n, NULL, 10) << 10;
	return true;
}

static void take_huge_bytes(struct memory_area *area, const char *line)
{
	if (take_bytes(line, "AnonHugePages:", &area->huge_bytes) ||
	    take_bytes(line, "ShmemPmdMapped:", &area->huge_bytes))
		return;
	take_bytes(line, "FilePmdMapped:", &area->huge_bytes);
}

/* Add what a line below the area's has. */
static void add_detail(struct memory_area *area, const char *line)
{
	if (take_bytes(line, "Rss:", &area->rss_bytes))
		area->has_own_pages |= !area->is_file && area->rss_bytes;
	else if (take_bytes(line, "Anonymous:", &area->own_bytes))
		area->has_own_pages |= area->is_file && area->own_bytes;
	else if (take_bytes(line, "Swap:", &area->swap_bytes))
		area->has_own_pages |= area->swap_bytes != 0;
	else if (take_bytes(line, "Pss:", &area->pss_bytes))
		return;
	else if (!strncmp(line, "VmFlags:", 8) && !area->is_file)
		area->is_agents |= strstr(line, WIPED_ON_FORK) ||
				   (strstr(line, NOT_RESERVED) && strstr(line, NOT_DUMPED));
	else
		take_huge_bytes(area, line);
}

/* Areas begin with a hexadecimal number, the lines below them with a name. */
static bool is_detail(const char *line)
{
	return *line >= 'A' && *line <= 'Z';
}

void torsh_memory_areas_add_line(struct memory_areas *areas, const char *line,
				 const char *agent_file)
{
	struct memory_area area = {0};
	char permissions[5];
	int at = 0;

	if (is_detail(line) && areas->n) {
		add_detail(&areas->items[areas->n - 1], line);
		return;
	}
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &area.begin,
		   &area.end, permissions, &area.file_offset, &at) < 4)
		return;
	line += at;
	area.is_readable = permissions[0] == 'r';
	area.is_writable = permissions[1] == 'w';
	area.is_shared = permissions[3] == 's';
	area.is_executable = permissions[2] == 'x';
	area.is_file = *line == '/';
	area.is_stack = !strncmp(line, "[stack]", 7);
	area.is_kernels = !strncmp(line, "[v", 2) || !strncmp(line, "[uprobes]", 9);
	area.is_brk_heap = !strncmp(line, "[heap]", 6);
	area.is_device = is_device(line) || !strncmp(line, "[v", 2);
	area.path = path_of(areas, &area, line);
	area.is_agents = ends_with(line, agent_file) || is_rest_of_agent(areas, &area);
	add_area(areas, &area);
}

int torsh_memory_areas_read(struct memory_areas *areas, pid_t pid, const char *agent_file)
{
	char path[64], *line = NULL;
	size_t capacity = 0;
	FILE *in;

	*areas = (struct memory_areas){0};
	snprintf(path, sizeof(path), "/proc/%d/smaps", (int)pid);
	in = fopen(path, "re");
	if (!in)
		return -errno;
	while (getline(&line, &capacity, in) > 0)
		torsh_memory_areas_add_line(areas, line, agent_file);
	free(line);
	fclose(in);
	if (areas->n)
		return 0;
	torsh_memory_areas_free(areas);
	return -ESRCH;
}

void torsh_memory_areas_free(struct memory_areas *areas)
{
	for (uint32_t i = 0; i < areas->n; i++)
		free(areas->items[i].path);
	free(areas->items);
	*areas = (struct memory_areas){0};
}

const struct memory_area *torsh_memory_areas_find(const struct memory_areas *areas,
						  uint64_t address)
{
	uint32_t from = 0, to = areas->n;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (areas->items[middle].end <= address)
			from = middle + 1;
		else
			to = middle;
	}
	return from < areas->n && areas->items[from].begin <= address ? &areas->items[from] : NULL;
}
