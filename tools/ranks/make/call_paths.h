/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Nodes of a fold for the stacks and spans of one process, each made once. A frame is its function,
 * its file and, of native code, the build-id: addresses, lines and folders of ranks may differ.
 */
#ifndef TORSH_RANKS_MAKE_CALL_PATHS_H
#define TORSH_RANKS_MAKE_CALL_PATHS_H

#include "tools/ranks/fold/fold.h"
#include "tools/symbols/stack_view.h"
#include "tools/timeline/spans.h"

struct call_paths {
	struct fold *fold;
	struct recorded_process *process;
	struct symbols *symbols;
	struct key_index of_stacks; /* by stack + 1 */
	struct key_index of_spans; /* by node above, kind and label */
	struct hash_map build_ids; /* by path of a module: index of ids */
	char **ids;
	size_t n_ids, ids_room;
};

/* Begin without nodes; torsh_call_paths_end frees it. The arguments must outlive it. */
void torsh_call_paths_start(struct call_paths *paths, struct fold *fold,
			    struct recorded_process *process, struct symbols *symbols);

/* Free it; the nodes stay. */
void torsh_call_paths_end(struct call_paths *paths);

/*
 * Returns the node of n frames, innermost first. only_python: of those of Python, if there is one.
 */
uint32_t torsh_call_path_frames(struct call_paths *paths, const struct frame *const *frames,
				size_t n, bool only_python);

/* Returns the node of a span below the one around it; 0: below its stack. */
uint32_t torsh_call_path_span(struct call_paths *paths, const struct span *span, uint32_t outer);

#endif
