/* What the module tilusc._call reads of torch's tensors.
 *
 * torch 2.10 and later have a table of functions for that, DLPack's, which reads all of a tensor in
 * the time of one method. Tensors of older ones, and those of other types than the two that torch
 * makes, are read by their methods. Either way the module is of no version of torch. */
#ifndef TILUSC_TENSOR_H
#define TILUSC_TENSOR_H

#define Py_LIMITED_API 0x03090000
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

enum { TENSOR_DIMENSIONS = 8 };     /* the most of a tensor that is read */

/* The type of elements: torch's object, where methods read it, or the bits of a DLDataType. */
typedef struct ElementType {
    PyObject *object;       /* borrowed, as torch keeps its types; NULL: `bits` have it */
    uint32_t bits;
} ElementType;

/* What is read of a tensor. `place`: the GPU's number, or -1 for host memory. */
typedef struct Tensor {
    ElementType type;
    uint64_t address;
    int64_t place;
    int dimensions;
    int64_t shape[TENSOR_DIMENSIONS], stride[TENSOR_DIMENSIONS];
} Tensor;

/* How tensors are read: those of `types`, two of them, by a table of functions, where there is one. */
typedef struct TensorReader {
    PyObject *types[2];     /* borrowed */
    const struct DlpackExchange *exchange;
} TensorReader;

/* Reads how tensors of the two types of a tuple, which outlives `out`, are read. Returns false, with
 * an exception, where it is no such tuple. */
bool tensor_find_reader(PyObject *types, TensorReader *out);

/* Reads a tensor. Returns false, mostly with an exception, where that cannot be. */
bool tensor_read(const TensorReader *reader, PyObject *tensor, Tensor *out);
bool tensor_read_address(const TensorReader *reader, PyObject *tensor, uint64_t *out);

/* Returns an uninitialized matrix like `like`, a new reference, or NULL. */
PyObject *tensor_make_matrix(PyObject *like, int64_t rows, PyObject *columns);

bool tensor_is_contiguous(const Tensor *tensor);
int64_t tensor_count(const Tensor *tensor);

/* Returns torch's type of a tensor's elements, borrowed, or NULL with an exception. */
PyObject *tensor_type_object(PyObject *tensor);

/* Tells whether a tensor's type is one that is known in both ways. */
static inline bool element_type_is(ElementType have, ElementType known)
{
    return have.object ? have.object == known.object : have.bits == known.bits;
}

/* Reads an integer and gives it back. Returns false, with an exception, where it is none. */
bool take_integer(PyObject *owned, int64_t *out);

/* Interns the names of methods, once. */
bool tensor_intern_names(void);

#endif
