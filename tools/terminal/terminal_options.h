/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* --color, --width and --no-pager, which every command takes. */
#ifndef TORSH_TERMINAL_TERMINAL_OPTIONS_H
#define TORSH_TERMINAL_TERMINAL_OPTIONS_H

#include <argp.h>

/* A child of a command's argp; it takes no input. */
extern const struct argp torsh_terminal_argp;

/* The children of a command that has no others. */
extern const struct argp_child torsh_terminal_children[];

#endif
