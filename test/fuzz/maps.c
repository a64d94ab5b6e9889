/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A list of mappings as /proc/self/maps has them up to the first NUL, and behind it what an object
 * has at its start in memory, which lies at IMAGE. Nothing below that is mapped, so that no other
 * object is taken for one of the list's.
 */
#include "agent/modules/maps.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define IMAGE 0x100000u
#define IMAGE_BYTES 0x2000u
#define SPARE_BYTES 0x2000u /* mappings begin with a page; those from bytes need not */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

static uint8_t *map_image(void)
{
	void *image =
		mmap((void *)(uintptr_t)IMAGE, IMAGE_BYTES + SPARE_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (image != (void *)(uintptr_t)IMAGE)
		abort();
	return image;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	static uint8_t *image;
	size_t n_text = n_bytes ? strnlen((const char *)bytes, n_bytes) : 0;
	size_t n_image = n_text < n_bytes ? n_bytes - n_text - 1 : 0;
	int fd = memfd_create("fuzzed-maps", MFD_CLOEXEC);
	struct module module;

	image = image ? image : map_image();
	if (fd < 0 || (n_text && write(fd, bytes, n_text) < 0) || lseek(fd, 0, SEEK_SET))
		abort();
	memset(image, 0, IMAGE_BYTES);
	if (n_image)
		memcpy(image, bytes + n_text + 1, n_image < IMAGE_BYTES ? n_image : IMAGE_BYTES);
	if (torsh_maps_find_in(fd, IMAGE + 0x1234, &module) &&
	    (module.start > IMAGE + 0x1234 || module.end <= IMAGE + 0x1234 || !module.eh_frame_hdr))
		abort();
	close(fd);
	return 0;
}
