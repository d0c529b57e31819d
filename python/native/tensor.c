#include "tensor.h"

/* Methods and attributes of tensors, interned at import. */
#define NAMES(X) X(data_ptr) X(dtype) X(get_device) X(new_empty) X(shape) X(stride)

enum {
#define X(name) NAME_##name,
    NAMES(X)
#undef X
    NAME_COUNT
};

static PyObject *names[NAME_COUNT];

bool tensor_intern_names(void)
{
    static const char *const texts[] = {
#define X(name) #name,
        NAMES(X)
#undef X
    };
    for (int i = 0; i < NAME_COUNT; i++)
        if (!names[i] && !(names[i] = PyUnicode_InternFromString(texts[i])))
            return false;
    return true;
}

/* ---- by DLPack -------------------------------------------------------------------- */

/* Types of DLPack 1.3, of whose table only what reads a tensor is called. */
typedef struct DlpackTensor {
    void *data;
    struct {
        int32_t kind, number;
    } device;
    int32_t dimensions;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } type;
    const int64_t *shape, *stride;      /* the tensor's own */
    uint64_t offset;                    /* of the first element, in bytes */
} DlpackTensor;

typedef struct DlpackExchange {
    struct {
        uint32_t major, minor;
        const void *older;
    } version;
    void (*allocate)(void), (*from_object)(void), (*to_object)(void);
    int (*read)(void *object, DlpackTensor *out);
    void (*current_stream)(void);
} DlpackExchange;

enum { DLPACK_MAJOR = 1, DLPACK_HOST = 1, DLPACK_CUDA = 2 };

bool tensor_find_reader(PyObject *types, TensorReader *out)
{
    for (int i = 0; i < 2; i++)
        if (!(out->types[i] = PyTuple_GetItem(types, i)))
            return false;
    PyObject *capsule = PyObject_GetAttrString(out->types[0], "__dlpack_c_exchange_api__");
    const DlpackExchange *exchange =
        capsule ? PyCapsule_GetPointer(capsule, "dlpack_exchange_api") : NULL;
    Py_XDECREF(capsule);        /* the table stays as long as the process */
    PyErr_Clear();
    bool fits = exchange && exchange->version.major == DLPACK_MAJOR && exchange->read;
    out->exchange = fits ? exchange : NULL;
    return true;
}

static bool is_of_reader(const TensorReader *reader, PyObject *tensor)
{
    const PyObject *type = (PyObject *)Py_TYPE(tensor);
    return reader->exchange && (type == reader->types[0] || type == reader->types[1]);
}

static bool set_place(const DlpackTensor *from, int64_t *out)
{
    *out = from->device.kind == DLPACK_HOST ? -1 : from->device.number;
    return from->device.kind == DLPACK_HOST || from->device.kind == DLPACK_CUDA;
}

static bool read_by_dlpack(const DlpackExchange *exchange, PyObject *tensor, Tensor *out)
{
    DlpackTensor from;
    if (exchange->read(tensor, &from) || !set_place(&from, &out->place) ||
        from.dimensions > TENSOR_DIMENSIONS)
        return false;
    out->address = (uint64_t)(uintptr_t)from.data + from.offset;
    out->type = (ElementType){
        .bits = from.type.code | (uint32_t)from.type.bits << 8 | (uint32_t)from.type.lanes << 16};
    out->dimensions = from.dimensions;
    for (int i = 0; i < from.dimensions; i++) {
        out->shape[i] = from.shape[i];
        out->stride[i] = from.stride[i];
    }
    return true;
}

/* ---- by methods ------------------------------------------------------------------- */

bool take_integer(PyObject *owned, int64_t *out)
{
    if (!owned)
        return false;
    *out = PyLong_AsLongLong(owned);
    Py_DECREF(owned);
    return *out != -1 || !PyErr_Occurred();
}

static bool ask(PyObject *tensor, int name, int64_t *out)
{
    return take_integer(PyObject_CallMethodObjArgs(tensor, names[name], NULL), out);
}

/* Reads a tuple of integers, and gives it back. */
static bool take_integers(PyObject *owned, int64_t out[TENSOR_DIMENSIONS], int *count)
{
    bool ok = owned && PyTuple_Check(owned) && PyTuple_Size(owned) <= TENSOR_DIMENSIONS;
    *count = ok ? (int)PyTuple_Size(owned) : 0;
    for (int i = 0; ok && i < *count; i++) {
        out[i] = PyLong_AsLongLong(PyTuple_GetItem(owned, i));
        ok = out[i] != -1 || !PyErr_Occurred();
    }
    Py_XDECREF(owned);
    return ok;
}

static bool ask_address(PyObject *tensor, uint64_t *out)
{
    int64_t address = 0;
    bool ok = ask(tensor, NAME_data_ptr, &address);
    *out = (uint64_t)address;
    return ok;
}

PyObject *tensor_type_object(PyObject *tensor)
{
    PyObject *type = PyObject_GetAttr(tensor, names[NAME_dtype]);
    Py_XDECREF(type);
    return type;
}

static bool read_by_methods(PyObject *tensor, Tensor *out)
{
    int strides;
    out->type = (ElementType){.object = tensor_type_object(tensor)};
    return out->type.object && ask(tensor, NAME_get_device, &out->place) &&
           take_integers(PyObject_GetAttr(tensor, names[NAME_shape]), out->shape,
                         &out->dimensions) &&
           take_integers(PyObject_CallMethodObjArgs(tensor, names[NAME_stride], NULL),
                         out->stride, &strides) &&
           strides == out->dimensions && ask_address(tensor, &out->address);
}

/* ---- both ------------------------------------------------------------------------- */

bool tensor_read(const TensorReader *reader, PyObject *tensor, Tensor *out)
{
    return is_of_reader(reader, tensor) ? read_by_dlpack(reader->exchange, tensor, out)
                                        : read_by_methods(tensor, out);
}

bool tensor_read_address(const TensorReader *reader, PyObject *tensor, uint64_t *out)
{
    Tensor t;
    if (!is_of_reader(reader, tensor))
        return ask_address(tensor, out);
    bool ok = read_by_dlpack(reader->exchange, tensor, &t);
    *out = ok ? t.address : 0;
    return ok;
}

bool tensor_is_contiguous(const Tensor *tensor)
{
    int64_t next = 1;
    bool contiguous = true;
    for (int i = tensor->dimensions - 1; i >= 0; i--) {
        contiguous = contiguous && (tensor->shape[i] == 1 || tensor->stride[i] == next);
        next *= tensor->shape[i];
    }
    return contiguous || next == 0;
}

int64_t tensor_count(const Tensor *tensor)
{
    int64_t count = 1;
    for (int i = 0; i < tensor->dimensions; i++)
        count *= tensor->shape[i];
    return count;
}

PyObject *tensor_make_matrix(PyObject *like, int64_t rows, PyObject *columns)
{
    PyObject *number = PyLong_FromLongLong(rows);
    PyObject *out = number ? PyObject_CallMethodObjArgs(like, names[NAME_new_empty], number,
                                                        columns, NULL)
                           : NULL;
    Py_XDECREF(number);
    return out;
}
