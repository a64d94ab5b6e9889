/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Who keeps blocks: for a block of a site the shortest way to it from a root. */
#ifndef TORSH_WRITER_REACHABILITY_HOLDERS_HOLDERS_H
#define TORSH_WRITER_REACHABILITY_HOLDERS_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/writer/reachability/judged_moment.h"
#include "tools/writer/reachability/python/python_reach.h"
#include "tools/writer/reachability/root_scan.h"
#include "tools/writer/reachability/verdicts.h"

#define HOLDER_BLOCKS 32u /* of a way: the first and the last ones of a longer one */
#define HOLDERS_MAX 256u /* sites with most bytes */

/* As numbered in the recording: Holder.root_kind. */
enum root_kind {
	ROOT_GLOBAL = 1, /* data of a module */
	ROOT_STACK = 2, /* of a thread, or its thread-local storage */
	ROOT_REGISTER = 3,
	ROOT_MAPPING = 4, /* memory that the program mapped */
	ROOT_MODULES = 5, /* sys.modules of Python */
	ROOT_LOCAL = 6, /* a variable of a running function of Python */
};

/* How long a block is alive, and what operator of a framework read it last, if it is a tensor's. */
struct holder_use {
	uint64_t address;
	uint64_t allocated; /* stamp, since the process's first; 0: not known */
	uint64_t read; /* likewise, of the last operator that read it; 0: none did */
	uint32_t operator; /* its label */
	uint32_t read_step; /* as in struct tensor_read */
	bool has_reads; /* of the process: inputs of operators were recorded, all of them */
	uint32_t step; /* of the moment */
};

struct holder {
	uint32_t site;
	enum root_kind root;
	char *path; /* of the module, or of what mapped the memory; NULL: unknown */
	/* of the root's pointer, 0 in a register; less the module's load address */
	uint64_t address;
	pid_t tid; /* of a stack, or that runs the function; 0: not known */
	/* of a variable: its name, its function and where that is; NULL, 0: not known */
	char *variable, *function, *file;
	uint32_t line;
	/* Of the way, from the root to the site's block, without the inner parts of objects. */
	uint32_t n_blocks, n_left_out;
	uint32_t sites[HOLDER_BLOCKS]; /* 0: CPython's allocator has the block */
	uint64_t bytes[HOLDER_BLOCKS];
	char *names[HOLDER_BLOCKS]; /* of objects of Python, NULL: it is none, or has none */
	char *types[HOLDER_BLOCKS]; /* likewise */
	/*
	 * of an object of C++ its table of virtual functions: the path of its module, and its
	 * address less the module's load address; NULL: it has none
	 */
	char *table_paths[HOLDER_BLOCKS];
	uint64_t tables[HOLDER_BLOCKS];
	struct holder_use use; /* of the site's block */
};

struct holders {
	struct holder *items;
	uint32_t n;
	size_t capacity;
};

/* What modules of Python lead to, and by which of their variables. */
struct python_owners {
	const struct python_reach *reach;
	const uint32_t *of; /* by block: see struct python_account; NULL: none is known */
};

/*
 * Add the ways to the sites with most kept bytes, without those that are in others, which may be
 * NULL: from modules of Python
 * where these lead to them, and to a block of the variable that keeps most of the site.
 */
void torsh_holders_add(struct holders *holders, const struct holders *others,
		       const struct scan *scan, const struct verdicts *verdicts,
		       const struct python_owners *owners, const struct judged_moment *moment);

/* Free them. */
void torsh_holders_free(struct holders *holders);

#endif
