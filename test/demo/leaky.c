/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The demo's C extension: it smooths the loss, and forgets to give back what it copied on the way.
 * A Python extension where Python's headers were there at build time, else a plain library that
 * train.py calls through ctypes.
 */
#include <stdlib.h>
#include <string.h>

#if defined(__has_include)
#if __has_include(<Python.h>)
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define IS_EXTENSION 1
#endif
#endif

#define HISTORY_VALUES 8192

static double history[HISTORY_VALUES];
static size_t n_history;

__attribute__((noinline)) static double *copy_history(void)
{
	double *copy = malloc(sizeof(history)); /* the planted leak */

	if (copy)
		memcpy(copy, history, sizeof(history));
	return copy;
}

/* The mean of the last losses. Works on a copy, which nobody frees. */
__attribute__((noinline, visibility("default"))) double leaky_smooth(double loss)
{
	double *values, sum = 0;
	size_t n;

	history[n_history++ % HISTORY_VALUES] = loss;
	values = copy_history();
	if (!values)
		return loss;
	n = n_history < HISTORY_VALUES ? n_history : HISTORY_VALUES;
	for (size_t i = 0; i < n; i++)
		sum += values[i];
	return sum / (double)n;
}

#ifdef IS_EXTENSION
static PyObject *smooth(PyObject *self, PyObject *loss)
{
	double value = PyFloat_AsDouble(loss);

	(void)self;
	if (value == -1.0 && PyErr_Occurred())
		return NULL;
	return PyFloat_FromDouble(leaky_smooth(value));
}

static PyMethodDef methods[] = {
	{"smooth", smooth, METH_O, "The mean of the last losses."},
	{NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
	.m_base = PyModuleDef_HEAD_INIT, .m_name = "leaky", .m_size = -1, .m_methods = methods};

PyMODINIT_FUNC PyInit_leaky(void)
{
	return PyModule_Create(&module);
}
#endif
