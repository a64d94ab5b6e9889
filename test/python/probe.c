/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * An extension module for test/e2e/python/python_frames.py: each leak() allocates a block of a
 * unique size and writes down, at the same moment, the interpreter's own frames.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <frameobject.h>
#include <pthread.h>

static size_t next_size = 40000;
static PyObject *truth; /* a dict: size -> list of (name, file, line), innermost first */

static PyFrameObject *outer_of(PyFrameObject *frame)
{
#if PY_VERSION_HEX >= 0x03090000
	return PyFrame_GetBack(frame);
#else
	PyFrameObject *outer = frame->f_back;

	Py_XINCREF(outer);
	return outer;
#endif
}

static PyObject *describe(PyFrameObject *frame)
{
#if PY_VERSION_HEX >= 0x03090000
	PyObject *code = (PyObject *)PyFrame_GetCode(frame);
#else
	PyObject *code = (PyObject *)frame->f_code;
#endif
#if PY_VERSION_HEX >= 0x030b0000
	PyObject *name = PyObject_GetAttrString(code, "co_qualname");
#else
	PyObject *name = PyObject_GetAttrString(code, "co_name");
#endif
	PyObject *file = PyObject_GetAttrString(code, "co_filename");
	PyObject *line = PyObject_GetAttrString((PyObject *)frame, "f_lineno");

#if PY_VERSION_HEX >= 0x03090000
	Py_DECREF(code);
#endif
	return Py_BuildValue("(NNN)", name, file, line);
}

/* Write the thread's frames down under a new size, which it returns. */
static size_t write_down(void)
{
	PyObject *frames = PyList_New(0), *size = PyLong_FromSize_t(next_size);
	PyFrameObject *frame = PyEval_GetFrame();

	Py_XINCREF(frame);
	while (frame) {
		PyFrameObject *outer = outer_of(frame);
		PyObject *described = describe(frame);

		PyList_Append(frames, described);
		Py_XDECREF(described);
		Py_DECREF(frame);
		frame = outer;
	}
	PyDict_SetItem(truth, size, frames);
	Py_DECREF(frames);
	Py_DECREF(size);
	return next_size++;
}

/* Kept for good; volatile, so that the compiler does what is written. */
static void *volatile kept;

static PyObject *leak(PyObject *module, PyObject *unused)
{
	kept = malloc(write_down());
	Py_RETURN_NONE;
}

static PyObject *leak_without_lock(PyObject *module, PyObject *unused)
{
	size_t size = write_down();

	Py_BEGIN_ALLOW_THREADS;
	kept = malloc(size);
	Py_END_ALLOW_THREADS;
	Py_RETURN_NONE;
}

static PyObject *call(PyObject *module, PyObject *function)
{
	return PyObject_CallObject(function, NULL);
}

static void *run_thread(void *function)
{
	PyGILState_STATE state;
	PyObject *result;

	kept = malloc(39000); /* no Python here yet */
	state = PyGILState_Ensure();
	result = PyObject_CallObject(function, NULL);
	Py_XDECREF(result);
	PyGILState_Release(state);
	kept = malloc(39001);
	return NULL;
}

/* Call a function from a thread that the interpreter didn't start. */
static PyObject *call_in_thread(PyObject *module, PyObject *function)
{
	pthread_t thread;

	Py_BEGIN_ALLOW_THREADS;
	pthread_create(&thread, NULL, run_thread, function);
	pthread_join(thread, NULL);
	Py_END_ALLOW_THREADS;
	Py_RETURN_NONE;
}

static PyObject *take_truth(PyObject *module, PyObject *unused)
{
	Py_INCREF(truth);
	return truth;
}

static PyMethodDef methods[] = {
	{"leak", leak, METH_NOARGS, NULL},
	{"leak_without_lock", leak_without_lock, METH_NOARGS, NULL},
	{"call", call, METH_O, NULL},
	{"call_in_thread", call_in_thread, METH_O, NULL},
	{"truth", take_truth, METH_NOARGS, NULL},
	{NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
	.m_base = PyModuleDef_HEAD_INIT,
	.m_name = "probe",
	.m_size = -1,
	.m_methods = methods,
};

PyMODINIT_FUNC PyInit_probe(void)
{
	truth = PyDict_New();
#ifdef Py_GIL_DISABLED
	PyObject *module = PyModule_Create(&definition);

	PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
	return module;
#else
	return PyModule_Create(&definition);
#endif
}
