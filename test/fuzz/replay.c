/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Runs a fuzz harness once over each file named on the command line, without libFuzzer: what was
 * found once must stay mended. The same harness source is built with libFuzzer by `make fuzz`.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

static void replay_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *bytes = NULL;
	size_t n_bytes = 0, n_room = 0;

	if (!file) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(2);
	}
	for (;;) {
		if (n_bytes == n_room) {
			n_room = n_room ? 2 * n_room : 4096;
			bytes = realloc(bytes, n_room);
			if (!bytes)
				abort();
		}
		size_t n = fread(bytes + n_bytes, 1, n_room - n_bytes, file);
		if (!n)
			break;
		n_bytes += n;
	}
	fclose(file);
	/* An exact copy: a read past the end must leave the block, so that a sanitizer sees it. */
	uint8_t *exact = malloc(n_bytes ? n_bytes : 1);
	if (!exact)
		abort();
	memcpy(exact, bytes, n_bytes);
	free(bytes);
	LLVMFuzzerTestOneInput(exact, n_bytes);
	free(exact);
}

int main(int argc, char **argv)
{
	LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
	for (int i = 1; i < argc; i++)
		replay_file(argv[i]);
	printf("%d inputs\n", argc - 1);
	return 0;
}
