/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Looks for the interpreter among loaded objects, and notes what is not possible with it. */
#include "agent/process/callbacks.h"
#include "agent/process/config.h"
#include "agent/process/process.h"
#include "agent/process/text_buffer.h"
#include "agent/python/python.h"
#include "shim/cpython/cpython.h"
#include "shim/cpython/cpython_end.h"

static void note_unsupported(void)
{
	struct text text = torsh_text_map(TEXT_NOTE_BYTES);

	torsh_text_put(&text, "python: this agent does not support the frames of CPython ");
	torsh_text_put_number(&text, torsh_cpython.version >> 8);
	torsh_text_put(&text, ".");
	torsh_text_put_number(&text, torsh_cpython.version & 0xff);
	torsh_text_put(&text, ": stacks are native ones only");
	torsh_channel_note(&torsh_process->channel, text.bytes);
	torsh_text_unmap(&text);
}

static void watch_memory(const struct link_map *map)
{
	if (torsh_callbacks.interpreter_found(map))
		torsh_channel_note(&torsh_process->channel,
				   "python: TORSH_PROFILER_PYTHON_ALLOCATORS has no effect: the "
				   "interpreter was running before it was seen");
}

void torsh_python_detect(const struct link_map *map)
{
	enum cpython_answer answer;

	if (!map || !(torsh_config.activities & ACTIVITY_PYTHON))
		return;
	answer = torsh_cpython_consider(map);
	if (answer == CPYTHON_UNKNOWN)
		note_unsupported();
	if (answer == CPYTHON_FOUND)
		torsh_cpython_find_end();
	if (answer != CPYTHON_NONE && torsh_config.python_allocators)
		watch_memory(map);
}
