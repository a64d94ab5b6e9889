/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * CPython's heap by type, and which variables of modules lead to how much of all memory: of several
 * that lead to a block the one from which it is reached in fewest steps counts.
 */
#ifndef TORSH_WRITER_REACHABILITY_PYTHON_PYTHON_ACCOUNT_H
#define TORSH_WRITER_REACHABILITY_PYTHON_PYTHON_ACCOUNT_H

#include "tools/writer/reachability/python/python_reach.h"
#include "tools/writer/reachability/verdicts.h"

#define PYTHON_ROWS_MAX 100u /* types and owners with most bytes, each */

/*
 * Of a type: its objects, with their parts, the items of a list for example, that are no objects.
 * Objects that nothing leads to wait for the garbage collector.
 */
struct python_type_sum {
	char *name;
	uint64_t objects, bytes, lost_objects, lost_bytes;
};

/* A variable of a module, or a module for what is its own. */
struct python_owner {
	char *name, *type;
	char *file; /* of the module; NULL: not known */
	uint64_t objects, bytes; /* objects, and bytes of all blocks that it leads to */
};

struct python_account {
	bool is_there;
	uint64_t at_ns; /* session time */
	uint64_t pool_bytes; /* of CPython's allocator, in use or free */
	uint64_t pool_used_bytes;
	uint64_t objects, bytes; /* of all types */
	struct python_type_sum *types; /* first those with most bytes */
	uint32_t n_types;
	struct python_owner *owners; /* likewise */
	uint32_t n_owners;
	uint32_t *owner_of; /* by block of the index, numbered from 1 on; 0: none. NULL: freed */
};

/*
 * Make the account; free it with torsh_python_account_free. owner_of has the owners' blocks until
 * torsh_python_account_trim.
 */
void torsh_python_account_make(struct python_account *account, struct python_heap *heap,
			       const struct verdicts *verdicts, const struct python_reach *reach);

/* Free what only serves to name owners. */
void torsh_python_account_trim(struct python_account *account);

/* Free it. */
void torsh_python_account_free(struct python_account *account);

#endif
