# cython: language_level=3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Functions of Cython between lines of Python, for test/e2e/python/python_frames.py."""

from libc.stdlib cimport malloc

cdef void *kept


cdef int keep(size_t size):
    global kept
    kept = malloc(size)
    return kept != NULL


def call(function):
    return function()


def leak(size_t size):
    return keep(size)


class Caller:
    def call(self, function):
        return [call(each) for each in (function,)]


def generate(function):
    yield call(function)
