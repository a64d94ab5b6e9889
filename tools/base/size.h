/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Sizes, times and counts as text. */
#ifndef TORSH_BASE_SIZE_H
#define TORSH_BASE_SIZE_H

#include <stddef.h>
#include <stdint.h>

#define SIZE_TEXT_BYTES 48

/*
 * "4096", "10K", "5M", "1.5G", "2TiB", "100 kB": each letter is a power of 1024, B is optional,
 * case is ignored. Returns 0, or -EINVAL if it is no size or larger than 2^63 - 1.
 */
int torsh_size_parse(const char *text, uint64_t *bytes);

/*
 * "250", "250 ns", "1.5us", "20 ms", "3s", "2min"; ns without a unit. Returns 0 or -EINVAL, as
 * torsh_size_parse.
 */
int torsh_duration_parse(const char *text, uint64_t *ns);

/*
 * "512 B", "12.5 KiB", "1.00 GiB": three significant digits. Returns out, which holds
 * SIZE_TEXT_BYTES.
 */
const char *torsh_size_human(uint64_t bytes, char *out);

/* "12,345,678". Returns out, which holds SIZE_TEXT_BYTES. */
const char *torsh_size_grouped(uint64_t number, char *out);

/*
 * "1 step", "12,345 steps", "2 processes": a number and a noun, which is passed in the singular.
 * Returns out, which holds SIZE_TEXT_BYTES.
 */
const char *torsh_size_counted(uint64_t number, const char *noun, char *out);

/* "12.5 KiB (12,800 bytes)", or "512 bytes". Returns out, which holds SIZE_TEXT_BYTES. */
const char *torsh_size_exact(uint64_t bytes, char *out);

/*
 * "512", "12.5 k", "1.23 G": with the letter of a power of 1000. Returns out, which holds
 * SIZE_TEXT_BYTES.
 */
const char *torsh_size_si(uint64_t number, char *out);

/*
 * "12.3%" of part in whole; "<0.1%" of what is less but not nothing, "0.0%" of an empty whole.
 * Returns out, which holds SIZE_TEXT_BYTES.
 */
const char *torsh_size_percent(double part, double whole, char *out);

/* "1.234 s", "12.3 ms", "3 min 12 s". Returns out, which holds SIZE_TEXT_BYTES. */
const char *torsh_size_duration(uint64_t ns, char *out);

#endif
