/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Files that hold what a recording holds: command lines, paths, names. They are their owner's
 * alone, and safe to write where other users may write too: a file is made anew under a name that
 * nobody could guess, relative to its directory, and takes the place of what has its own name when
 * it is whole. No link is followed, nothing that is there is written to.
 */
#ifndef TORSH_BASE_PRIVATE_FILE_H
#define TORSH_BASE_PRIVATE_FILE_H

#define PRIVATE_NAME_BYTES 256

struct private_file {
	int directory_fd;
	int fd; /* for reading and writing; close-on-exec */
	char name[PRIVATE_NAME_BYTES]; /* in the directory */
	char temporary[PRIVATE_NAME_BYTES]; /* what it is called until it is kept */
};

/* Returns 0 or -errno. The fd is the caller's to close before either of the two below. */
int torsh_private_create(struct private_file *file, const char *path);

/* Give the file its name. Returns 0, or -errno and the file is gone. */
int torsh_private_keep(struct private_file *file);

/* Remove the temporary file; a file that has the name stays. */
void torsh_private_drop(struct private_file *file);

/* A path by which libraries open the temporary file; the caller's. */
char *torsh_private_path(const struct private_file *file);

/*
 * Make the directory unless it is there and nobody else's but root's. Returns 0 or -errno: -EPERM
 * where it is another user's.
 */
int torsh_private_directory(const char *path);

#endif
