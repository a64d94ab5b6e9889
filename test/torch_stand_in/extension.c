/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torch._C: loads libtorch_cpu.so, which it is linked with, and nothing else. */
#include <Python.h>

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "_C", .m_size = -1};

PyMODINIT_FUNC PyInit__C(void)
{
	return PyModule_Create(&definition);
}
