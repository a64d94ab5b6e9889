/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/base/containers/intern.h"

const char *torsh_intern(struct intern *intern, const char *text)
{
	return text ? torsh_hash_map_put_text(&intern->map, text, 0)->key : NULL;
}

void torsh_intern_free(struct intern *intern)
{
	torsh_hash_map_free(&intern->map);
}
