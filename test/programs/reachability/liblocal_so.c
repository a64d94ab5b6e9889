/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Opened while a program runs: keeps a pointer in its data, or in thread-local storage for which
 * the loader has no place left.
 */
void *library_value;
__thread void *large_array[(1 << 20) / sizeof(void *)];

void keep_in_thread(void *pointer)
{
	large_array[0] = pointer;
}

void keep_in_data(void *pointer)
{
	library_value = pointer;
}
