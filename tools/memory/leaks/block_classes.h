/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The live blocks of an allocation site by whether the program could still reach them. */
#ifndef TORSH_MEMORY_LEAKS_BLOCK_CLASSES_H
#define TORSH_MEMORY_LEAKS_BLOCK_CLASSES_H

#include "tools/memory/site_reader.h"

/* Returns "lost", "indirect", "possible", "reachable" or "unknown". */
const char *torsh_block_class_name(enum block_class block_class);

/*
 * Returns the worst class of a site's blocks: what is lost is lost for certain, while an old value
 * on a stack may keep one of many such blocks reachable.
 */
enum block_class torsh_block_class_of(const struct allocation_site *site);

/* Returns whether the program could still reach such blocks, or maybe: they are not lost. */
bool torsh_block_class_is_kept(enum block_class block_class);

/* Returns the sum of the kept ones of some blocks. */
struct counted_sites torsh_block_classes_kept(const struct class_sums *classes);

/*
 * Set the classes of the site's blocks. is_part: the site is a part of its stack's blocks, whose
 * class is known only if all of these have the same.
 */
void torsh_block_classes_find(struct allocation_site *site, bool is_part);

/* Returns the sums of all sites. */
struct class_sums torsh_block_classes_sum(const struct allocation_sites *sites);

/*
 * Read what was reachable when the process's exit began, and was freed since. The caller ends it.
 */
struct site_reader torsh_block_classes_freed(const struct recorded_process *process);

#endif
