/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/residency/memory_look.h"

#include <stdlib.h>

#include "tools/base/memory.h"
#include "tools/writer/input/target.h"
#include "tools/writer/reachability/heap_ranges.h"

#define AGENT_FILE "/libtorshagent.so"
#define TOLERATED_SHARE 20u
#define TOLERATED_BYTES (UINT64_C(4) << 20)
#define AREA_BYTES_MAX (UINT64_C(1) << 38) /* larger ones are not read page by page */

/* How many bytes of it are anonymous: as many pages are looked for. */
static uint64_t anonymous_bytes(const struct memory_area *area, bool with_files)
{
	if (area->is_shared || area->is_agents || area->is_device || area->is_kernels ||
	    area->end - area->begin > AREA_BYTES_MAX)
		return 0;
	if (area->is_file)
		return with_files ? area->own_bytes : 0;
	return area->rss_bytes;
}

/* Read here, as the process may end before an account is made. */
static void find_arenas(struct memory_look *look)
{
	for (uint32_t i = 0; i < look->areas.n; i++) {
		struct memory_area *area = &look->areas.items[i];

		area->is_arena = !area->is_file && area->begin % HEAP_ARENA_BYTES == 0 &&
				 torsh_heap_is_arena(&look->reader, area->begin);
	}
}

static void read_pages(struct memory_look *look, bool with_files)
{
	look->pages = torsh_memory_new(look->areas.n + 1, sizeof(*look->pages));
	for (uint32_t i = 0; i < look->areas.n; i++) {
		const struct memory_area *area = &look->areas.items[i];
		uint64_t bytes = anonymous_bytes(area, with_files);
		struct looked_pages *pages = &look->pages[i];

		pages->first = look->runs.n;
		pages->expected_bytes = bytes;
		/* Pages that can't be read are missing, and counted as such. */
		if (bytes)
			torsh_page_runs_read(&look->runs, look->reader.pages_fd, area->begin,
					     area->end, look->reader.page_bytes);
		pages->bytes = torsh_page_runs_limit(&look->runs, pages->first, bytes);
		pages->n = look->runs.n - pages->first;
	}
}

int torsh_memory_look(struct memory_look *look, const struct target *target, bool with_files)
{
	int result;

	*look = (struct memory_look){0};
	result = torsh_memory_reader_open(&look->reader, target->pid);
	if (result)
		return result;
	torsh_thread_names_read(&look->threads, target->pid);
	if (target->status_fd >= 0)
		torsh_process_read_status(target->status_fd, &look->status);
	result = torsh_memory_areas_read(&look->areas, target->pid, AGENT_FILE);
	if (result) {
		torsh_memory_look_free(look);
		return result;
	}
	find_arenas(look);
	read_pages(look, with_files);
	return 0;
}

/* What is faulted in while it is looked at is no fault of the look. */
static uint64_t tolerance(uint64_t bytes)
{
	return bytes / TOLERATED_SHARE + TOLERATED_BYTES;
}

bool torsh_memory_look_is_torn(const struct memory_look *look, uint64_t after_bytes)
{
	uint64_t before = look->status.rss_bytes, seen = 0;
	uint64_t least = before < after_bytes ? before : after_bytes;
	uint64_t most = before < after_bytes ? after_bytes : before;

	if (!before || !after_bytes)
		return before;
	for (uint32_t i = 0; i < look->areas.n; i++)
		seen += look->areas.items[i].rss_bytes;
	return seen > most + tolerance(most) || seen + tolerance(least) < least;
}

void torsh_memory_look_free(struct memory_look *look)
{
	torsh_page_runs_free(&look->runs);
	torsh_thread_names_free(&look->threads);
	torsh_memory_areas_free(&look->areas);
	torsh_memory_reader_close(&look->reader);
	free(look->pages);
	*look = (struct memory_look){.reader = {.memory_fd = -1, .pages_fd = -1}};
}
