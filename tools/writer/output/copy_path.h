/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Where recordings that belong to a session's recording stand: in a folder beside it. */
#ifndef TORSH_WRITER_OUTPUT_COPY_PATH_H
#define TORSH_WRITER_OUTPUT_COPY_PATH_H

#include <stdint.h>

/*
 * Make the folder NAME.KIND beside the recording NAME.torsh. Returns the path NAME.KIND/n.torsh for
 * the caller to free, or NULL without the folder.
 */
char *torsh_copy_path(const char *recording, const char *kind, uint32_t n);

#endif
