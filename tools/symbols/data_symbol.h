/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Names of variables in ELF files. */
#ifndef TORSH_SYMBOLS_DATA_SYMBOL_H
#define TORSH_SYMBOLS_DATA_SYMBOL_H

#include <stdint.h>

/*
 * Returns the name of the variable of the file at path that is at the address, less the file's load
 * address, or NULL. The caller frees it.
 */
char *torsh_data_symbol(const char *path, uint64_t address);

#endif
