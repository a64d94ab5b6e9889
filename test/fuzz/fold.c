/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A fold that was cut or made up. Checksums are passed over: its messages are read, too. */
#include <stdlib.h>
#include <string.h>

#include "tools/ranks/fold/fold_file.h"
#include "tools/ranks/fold/fold_pack.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

static void read_file(const uint8_t *bytes, size_t n_bytes)
{
	struct fold *fold = torsh_fold_create();
	struct fold_entries entries = {0};
	struct fold_bytes file = {.bytes = bytes, .n = n_bytes};
	char error[256];

	if (!torsh_fold_read_bytes(fold, &entries, 0, bytes, n_bytes, error, sizeof(error))) {
		for (size_t i = 0; i < entries.n; i++) {
			Torsh__FoldRank *row = torsh_fold_entry_rank(&file, &entries.items[i]);

			if (row)
				torsh__fold_rank__free_unpacked(row, NULL);
		}
	}
	free(entries.items);
	torsh_fold_destroy(fold);
}

/* What is packed again and read is the same. */
static void read_shared(const uint8_t *bytes, size_t n_bytes)
{
	struct fold *fold = torsh_fold_create(), *again = torsh_fold_create();
	uint8_t *packed, *packed_again;
	size_t n, n_again;

	if (!torsh_fold_unpack(fold, bytes, n_bytes)) {
		torsh_fold_settle(fold);
		packed = torsh_fold_pack(fold, &n);
		if (torsh_fold_unpack(again, packed, n))
			abort();
		torsh_fold_settle(again);
		packed_again = torsh_fold_pack(again, &n_again);
		if (n != n_again || memcmp(packed, packed_again, n))
			abort();
		free(packed);
		free(packed_again);
	}
	torsh_fold_destroy(fold);
	torsh_fold_destroy(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	Torsh__FoldRank *row;

	read_file(bytes, n_bytes);
	read_shared(bytes, n_bytes);
	row = torsh_fold_unpack_rank(bytes, n_bytes);
	if (row)
		torsh__fold_rank__free_unpacked(row, NULL);
	return 0;
}
