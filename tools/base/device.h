/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Devices of tensors, as PyTorch numbers them. */
#ifndef TORSH_BASE_DEVICE_H
#define TORSH_BASE_DEVICE_H

#include <stdint.h>

#define DEVICE_NAME_BYTES 32

/*
 * The name of a device given as type << 8 | index: "cpu", "cuda:0", "device 20:1". Returns out,
 * which holds DEVICE_NAME_BYTES.
 */
const char *torsh_device_name(uint32_t device, char *out);

#endif
