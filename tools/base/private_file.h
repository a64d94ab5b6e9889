/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Files with the contents of recordings: command lines, paths, names. Only their owner can read
 * them, and writing is safe in folders that other users can write to: a file is created under an
 * unpredictable name, relative to its directory, and renamed when it is complete. Links are not
 * followed, and existing files are never written to.
 */
#ifndef TORSH_BASE_PRIVATE_FILE_H
#define TORSH_BASE_PRIVATE_FILE_H

#define PRIVATE_NAME_BYTES 256

struct private_file {
	int directory_fd;
	int fd; /* for reading and writing; close-on-exec */
	char name[PRIVATE_NAME_BYTES]; /* the final name, relative to the directory */
	char temporary[PRIVATE_NAME_BYTES]; /* its name until torsh_private_keep */
};

/* Returns 0 or -errno. The caller closes fd before it calls one of the two functions below. */
int torsh_private_create(struct private_file *file, const char *path);

/* Give the file its name. Returns 0, or -errno and the file is gone. */
int torsh_private_keep(struct private_file *file);

/* Remove the temporary file; an existing file with the final name stays. */
void torsh_private_drop(struct private_file *file);

/* Returns a path by which libraries can open the temporary file; the caller frees it. */
char *torsh_private_path(const struct private_file *file);

/*
 * Make the directory unless it exists and belongs to this user or root. Returns 0 or -errno: -EPERM
 * if it belongs to another user.
 */
int torsh_private_directory(const char *path);

#endif
