/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The C++ kernels whose sources lie in the directory of Inductor's cache, which several programs
 * may share, by the name that PyTorch records. Of several with one name those count that the
 * process loaded, if its modules were recorded. The directory is untrusted.
 */
#ifndef TORSH_OPS_INDUCTOR_CPP_SOURCES_H
#define TORSH_OPS_INDUCTOR_CPP_SOURCES_H

#include "tools/ops/inductor/cpp_kernel.h"
#include "tools/recording/recording.h"

struct cpp_sources;

/* Read all sources below the folder; missing and unreadable files are skipped. */
struct cpp_sources *torsh_cpp_sources_read(const char *folder);

/* Free them; NULL is ignored. */
void torsh_cpp_sources_destroy(struct cpp_sources *sources);

/*
 * Returns one call of the process's kernel. A reason is set if there is no such source, or if there
 * are several with different numbers.
 */
struct cpp_kernel torsh_cpp_sources_find(const struct cpp_sources *sources,
					 const struct recorded_process *process, const char *name);

#endif
