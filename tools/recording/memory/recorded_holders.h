/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Who kept blocks, and CPython's objects, when a process was judged: a part of recording.h. */
#ifndef TORSH_RECORDING_MEMORY_RECORDED_HOLDERS_H
#define TORSH_RECORDING_MEMORY_RECORDED_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The shortest way from a root to a block of a stack: see Holder. */
enum root_of_blocks {
	ROOT_IN_MODULE = 1,
	ROOT_ON_STACK,
	ROOT_IN_REGISTER,
	ROOT_IN_MAPPING,
	ROOT_OF_PYTHON,
	ROOT_IN_FRAME,
};

/* How long a block was alive, and what read it last; steps are numbers + 1, 0: none is known. */
struct recorded_use {
	bool is_tensor, has_reads;
	char *operator; /* that read it last; NULL: none did */
	uint64_t read_ns, allocated_ns;
	uint32_t read_step, allocated_step, step;
};

struct held_block {
	uint32_t stack; /* 0: CPython's allocator has the block */
	uint64_t bytes;
	char *name, *type; /* of its object of Python; NULL: it has none */
	char *table_module; /* of its table of virtual functions; NULL: it has none */
	uint64_t table; /* address, less the module's load address */
};

struct recorded_holder {
	uint32_t stack;
	enum root_of_blocks root;
	char *path; /* or NULL */
	uint64_t address;
	uint32_t tid, left_out;
	/* of a variable of a running function of Python; NULL, 0: not known */
	char *variable, *function, *file;
	uint32_t line;
	struct recorded_use use; /* of the stack's block, when it was judged */
	struct held_block *blocks; /* from the root's on */
	size_t n_blocks;
};

/* See PythonHeap. */
struct python_type_row {
	char *name;
	uint64_t objects, bytes, lost_objects, lost_bytes;
};

struct python_owner_row {
	char *name, *type;
	char *file; /* of the module; NULL: it has none */
	uint64_t objects, bytes;
};

struct recorded_python_heap {
	bool is_there;
	uint64_t at_ns, pool_bytes, pool_used_bytes, objects, bytes;
	struct python_type_row *types;
	struct python_owner_row *owners;
	size_t n_types, n_owners;
};

#endif
