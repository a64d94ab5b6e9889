/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * An extension module that keeps 37 blocks of 1237 bytes each time it is initialised, and
 * keep(blocks, size) that many. Nothing points to them.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define BLOCKS 37
#define SIZE 1237

/* volatile, so that the compiler does what is written. */
static void *volatile last;

static void keep_blocks(int blocks, int size)
{
	for (int i = 0; i < blocks; i++)
		last = malloc((size_t)size);
}

static PyObject *keep(PyObject *module, PyObject *arguments)
{
	int blocks, size;

	if (!PyArg_ParseTuple(arguments, "ii", &blocks, &size))
		return NULL;
	keep_blocks(blocks, size);
	Py_RETURN_NONE;
}

static int initialise(PyObject *module)
{
	keep_blocks(BLOCKS, SIZE);
	return 0;
}

static PyMethodDef methods[] = {{"keep", keep, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)initialise}, {0, NULL}};
static PyModuleDef definition = {
	.m_base = PyModuleDef_HEAD_INIT,
	.m_name = "keeper",
	.m_methods = methods,
	.m_slots = slots,
};

PyMODINIT_FUNC PyInit_keeper(void)
{
	return PyModuleDef_Init(&definition);
}
