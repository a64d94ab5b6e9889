/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Names and texts of CPython's objects (3.8 to 3.14) in the memory of their process. */
#ifndef TORSH_WRITER_REACHABILITY_PYTHON_PYTHON_TEXT_H
#define TORSH_WRITER_REACHABILITY_PYTHON_PYTHON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/writer/reachability/python/python_types.h"

#define PYTHON_TEXT_BYTES 128u

/*
 * Read the text of a str of ASCII, as identifiers are. Returns false, with text empty, if the
 * object is none or longer.
 */
bool torsh_python_str(struct python_types *types, uint64_t object, char text[PYTHON_TEXT_BYTES]);

/* Likewise one of up to PATH_MAX; returns NULL if it is none. The caller frees it. */
char *torsh_python_long_str(struct python_types *types, uint64_t object);

/*
 * Read the key of the value to which the pointer at that place in a dict's keys leads. Returns
 * false if it is no value, or its key no str.
 */
bool torsh_python_key_at(struct python_types *types, uint64_t keys, uint64_t place,
			 char text[PYTHON_TEXT_BYTES]);

/* Likewise the key of that number, in the order in which keys were added. */
bool torsh_python_key(struct python_types *types, uint64_t keys, uint64_t number,
		      char text[PYTHON_TEXT_BYTES]);

/* Read the str to which the dict's first key leads, if that key is __name__: it is a module's. */
bool torsh_python_module_of_dict(struct python_types *types, uint64_t dict,
				 char text[PYTHON_TEXT_BYTES]);

/* Read the str that a dict has for the key, which is among its first ones. */
bool torsh_python_dict_str(struct python_types *types, uint64_t dict, const char *key,
			   char text[PYTHON_TEXT_BYTES]);

/* Returns the address of the keys that instances of the type share; 0: they share none. */
uint64_t torsh_python_shared_keys(struct python_types *types, const struct python_type *type);

/* Read the name of the field of C, or of __slots__, at that offset. */
bool torsh_python_member(const struct python_types *types, const struct python_type *type,
			 uint64_t offset, char text[PYTHON_TEXT_BYTES]);

#endif
