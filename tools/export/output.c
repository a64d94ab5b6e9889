/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* See tools/export/output.h. */
#include "tools/export/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/die.h"
#include "tools/terminal.h"

void torsh_output_open(struct output *output, const char *path)
{
	struct stat status;

	*output = (struct output){.path = path};
	if (!path) {
		output->file = torsh_terminal_raw_output();
		return;
	}
	/* A device or a pipe can't be replaced. */
	if (stat(path, &status) < 0 || S_ISREG(status.st_mode))
		output->temporary = torsh_need_text("%s.tmp", path);
	output->file = fopen(output->temporary ? output->temporary : path, "wbe");
	if (!output->file)
		torsh_die("can't write %s: %s", path, strerror(errno));
}

void torsh_output_close(struct output *output, int rc)
{
	if (rc == 0 && (fflush(output->file) || ferror(output->file)))
		rc = errno ? -errno : -EIO;
	if (output->path && fclose(output->file) != 0 && rc == 0)
		rc = -errno;
	if (output->temporary && rc == 0 && rename(output->temporary, output->path) < 0)
		rc = -errno;
	if (output->temporary && rc < 0)
		unlink(output->temporary);
	free(output->temporary);
	if (rc < 0)
		torsh_die("can't write %s: %s", output->path ? output->path : "standard output", strerror(-rc));
}
