/* The module tilusc._call: products and launches of torch tensors without ctypes.
 *
 * Its objects take calls whose arguments are right, and hand all others, and what is to be said of
 * them, to a function of Python, whose checks are the same. They know tensors by torch's methods
 * alone, so that the module is of no version of torch; the limited API of Python 3.9 makes it one
 * file for all later versions. Without it the package does the same by ctypes, more slowly. */
#define Py_LIMITED_API 0x03090000
#include <Python.h>

#include "tilus/matmul.h"
#include "tilus/runtime.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Methods and attributes of tensors, interned at import. */
#define NAMES(X) \
    X(data_ptr) X(dtype) X(get_device) X(is_contiguous) X(new_empty) X(numel) X(shape) X(stride)

enum {
#define X(name) NAME_##name,
    NAMES(X)
#undef X
    NAME_COUNT
};

static PyObject *names[NAME_COUNT];

/* ---- tensors --------------------------------------------------------------------- */

/* Reads an integer and gives it back. Returns false, with an exception, where it is none. */
static bool take_integer(PyObject *owned, int64_t *out)
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

/* Reads a tuple of two integers, and gives it back. */
static bool take_pair(PyObject *owned, int64_t out[2])
{
    bool ok = owned && PyTuple_Check(owned) && PyTuple_Size(owned) == 2;
    for (int i = 0; ok && i < 2; i++) {
        out[i] = PyLong_AsLongLong(PyTuple_GetItem(owned, i));
        ok = out[i] != -1 || !PyErr_Occurred();
    }
    Py_XDECREF(owned);
    return ok;
}

static bool is_of(PyObject *tensor, PyObject *dtype, int64_t device)
{
    PyObject *have = PyObject_GetAttr(tensor, names[NAME_dtype]);
    Py_XDECREF(have);       /* torch keeps its types */
    int64_t place;
    return have == dtype && ask(tensor, NAME_get_device, &place) && place == device;
}

static bool is_contiguous(PyObject *tensor)
{
    PyObject *answer = PyObject_CallMethodObjArgs(tensor, names[NAME_is_contiguous], NULL);
    Py_XDECREF(answer);
    return answer == Py_True;
}

static bool address_of(PyObject *tensor, uint64_t *out)
{
    int64_t address = 0;
    bool ok = ask(tensor, NAME_data_ptr, &address);
    *out = (uint64_t)address;
    return ok;
}

/* ---- objects that hold others ------------------------------------------------------- */

/* Members of a type, which its `HELD` lists: they are read from attributes of the same names. */
#define DECLARE(name) PyObject *name;
#define READ(name) && (self->name = PyObject_GetAttrString(from, #name))
#define VISIT(name) Py_VISIT(self->name);
#define CLEAR(name) Py_CLEAR(self->name);

static bool read_integer(PyObject *from, const char *name, int64_t *out)
{
    return take_integer(PyObject_GetAttrString(from, name), out);
}

/* Reads the address of a function or a handle. */
static bool read_address(PyObject *from, const char *name, uintptr_t *out)
{
    int64_t address = 0;
    bool ok = read_integer(from, name, &address);
    *out = (uintptr_t)address;
    return ok;
}

/* Makes an object of `type` that is not read yet, for the one argument of its constructor. */
static PyObject *make(PyTypeObject *type, PyObject *args, PyObject **from)
{
    if (!PyArg_ParseTuple(args, "O", from))
        return NULL;
    return PyType_GenericAlloc(type, 0);
}

static void destroy(PyObject *object, inquiry clear)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    clear(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

/* Raises the error of a status by Python's `check`; returns whether there is none. */
static bool passed(PyObject *check, tilus_status status)
{
    if (status == TILUS_OK)
        return true;
    PyObject *number = PyLong_FromLong((long)status);
    PyObject *none = number ? PyObject_CallFunctionObjArgs(check, number, NULL) : NULL;
    Py_XDECREF(number);
    Py_XDECREF(none);
    return none != NULL;
}

/* ---- products -------------------------------------------------------------------- */

/* `activations`, `result`, `f32`: torch's types. `like`: an empty tensor of C's type and place.
 * `checked`: a set of the addresses of weights and bias that were found right. `ready`: bytes of
 * workspace by the bits of m - 1. `streams`: address and bytes of the workspace of (device, stream).
 * `slow`: Python's function, which takes what is left. `n`: C's columns. */
#define PRODUCT_HELD(X) \
    X(activations) X(result) X(f32) X(like) X(checked) X(ready) X(streams) X(device) X(stream_of) \
    X(check) X(slow) X(n)

typedef tilus_status RunFunction(tilus_matmul_plan *plan, tilus_stream stream,
                                 const tilus_matmul_call *call);
typedef int CapturingFunction(tilus_stream stream, int *status);    /* the driver's */

typedef struct Product {
    PyObject_HEAD
    PRODUCT_HELD(DECLARE)
    int64_t place, columns, k, most_rows, residual, scaled;   /* the last two: 0 or 1 */
    uintptr_t run, handle, capturing;
} Product;

/* Arguments of a call, borrowed; those that are not given are None. */
typedef struct Operands {
    PyObject *a, *packed, *bias, *residual, *out, *a_scales;
} Operands;

static bool read_operands(PyObject *args, Operands *out)
{
    PyObject **const all[] = {&out->a, &out->packed, &out->bias,
                              &out->residual, &out->out, &out->a_scales};
    enum { COUNT = sizeof all / sizeof *all };
    Py_ssize_t given = PyTuple_Size(args);
    for (Py_ssize_t i = 0; i < COUNT; i++)
        *all[i] = i < given ? PyTuple_GetItem(args, i) : Py_None;
    return given >= COUNT - 1 && given <= COUNT;
}

/* Takes A of two dimensions whose rows have no gaps inside. */
static bool read_rows(const Product *self, PyObject *a, tilus_matmul_call *call)
{
    int64_t shape[2], stride[2];
    if (!take_pair(PyObject_GetAttr(a, names[NAME_shape]), shape) || shape[1] != self->k ||
        shape[0] < 1 || shape[0] > self->most_rows || !is_of(a, self->activations, self->place) ||
        !take_pair(PyObject_CallMethodObjArgs(a, names[NAME_stride], NULL), stride) ||
        stride[1] != 1)
        return false;
    call->m = shape[0];
    call->a_stride = stride[0];
    return address_of(a, &call->a);
}

/* Takes weights, and the bias with them, that were found right before. */
static bool read_weights(const Product *self, const Operands *t, tilus_matmul_call *call)
{
    PyObject *packed = PyObject_CallMethodObjArgs(t->packed, names[NAME_data_ptr], NULL);
    PyObject *bias = t->bias == Py_None
                         ? PyLong_FromLong(0)
                         : PyObject_CallMethodObjArgs(t->bias, names[NAME_data_ptr], NULL);
    PyObject *key = packed && bias ? PyTuple_Pack(2, packed, bias) : NULL;
    bool known = key && PySet_Contains(self->checked, key) == 1;
    if (known) {
        call->weights = PyLong_AsUnsignedLongLong(packed);
        call->bias = PyLong_AsUnsignedLongLong(bias);
    }
    Py_XDECREF(key);
    Py_XDECREF(bias);
    Py_XDECREF(packed);
    return known && !PyErr_Occurred();
}

/* Takes a tensor of `count` elements without gaps where one is wanted, else None. */
static bool read_added(const Product *self, PyObject *tensor, bool wanted, PyObject *dtype,
                       int64_t count, uint64_t *out)
{
    int64_t have;
    if (tensor == Py_None || !wanted)
        return tensor == Py_None && !wanted;
    return is_of(tensor, dtype, self->place) && ask(tensor, NAME_numel, &have) && have == count &&
           is_contiguous(tensor) && address_of(tensor, out);
}

static int bit_length(int64_t value)
{
    int bits = 0;
    for (; value > 0; value >>= 1)
        bits++;
    return bits;
}

/* Returns what a dictionary has at a key, which it gives back, borrowed; NULL: nothing. */
static PyObject *find(PyObject *dictionary, PyObject *key)
{
    PyObject *value = key ? PyDict_GetItemWithError(dictionary, key) : NULL;
    Py_XDECREF(key);
    return value;
}

/* Lends the stream's workspace, where it is large enough for what m rows are prepared for. */
static bool read_workspace(const Product *self, PyObject *stream, tilus_matmul_call *call)
{
    int64_t lent[2];
    PyObject *need = find(self->ready, PyLong_FromLong(bit_length(call->m - 1)));
    PyObject *have = need ? find(self->streams, PyTuple_Pack(2, self->device, stream)) : NULL;
    if (!have)
        return false;
    Py_INCREF(have);
    if (!take_pair(have, lent) || lent[1] < PyLong_AsLongLong(need))
        return false;
    call->workspace = (uint64_t)lent[0];
    call->workspace_size = (size_t)lent[1];
    return true;
}

/* Tells whether no graph is captured from a stream, by the driver: torch takes 0.3 us longer. */
static bool is_plain(const Product *self, tilus_stream stream)
{
    int status = 0;
    return ((CapturingFunction *)self->capturing)(stream, &status) == 0 && status == 0;
}

/* Takes torch's current stream where no graph is captured. */
static bool read_stream(const Product *self, tilus_matmul_call *call, tilus_stream *out)
{
    PyObject *stream = PyObject_CallFunctionObjArgs(self->stream_of, self->device, NULL);
    bool ok = stream && read_workspace(self, stream, call);
    int64_t address = 0;
    ok = take_integer(stream, &address) && ok;
    *out = (tilus_stream)(uintptr_t)address;
    return ok && is_plain(self, *out);
}

/* Makes C. Returns a new reference, or NULL. */
static PyObject *make_out(const Product *self, tilus_matmul_call *call)
{
    PyObject *rows = PyLong_FromLongLong(call->m);
    PyObject *out = rows ? PyObject_CallMethodObjArgs(self->like, names[NAME_new_empty], rows,
                                                      self->n, NULL)
                         : NULL;
    Py_XDECREF(rows);
    if (out && !address_of(out, &call->c))
        Py_CLEAR(out);
    return out;
}

/* Takes `out`, [m, n] without gaps, or makes one. Returns a new reference, or NULL. */
static PyObject *take_out(const Product *self, PyObject *out, tilus_matmul_call *call)
{
    int64_t shape[2];
    if (out == Py_None)
        return make_out(self, call);
    if (!take_pair(PyObject_GetAttr(out, names[NAME_shape]), shape) || shape[0] != call->m ||
        shape[1] != self->columns || !is_of(out, self->result, self->place) || !is_contiguous(out) ||
        !address_of(out, &call->c))
        return NULL;
    Py_INCREF(out);
    return out;
}

/* Fills a call. Returns its C, a new reference; NULL: Python is to look at it. */
static PyObject *read_call(const Product *self, PyObject *args, tilus_matmul_call *call,
                           tilus_stream *stream)
{
    Operands t;
    if (!read_operands(args, &t) || !read_rows(self, t.a, call) || !read_weights(self, &t, call) ||
        !read_added(self, t.residual, self->residual, self->result, call->m * self->columns,
                    &call->residual) ||
        !read_added(self, t.a_scales, self->scaled, self->f32, call->m, &call->a_scales) ||
        !read_stream(self, call, stream))
        return NULL;
    return take_out(self, t.out, call);
}

static PyObject *product_call(PyObject *object, PyObject *args, PyObject *named)
{
    const Product *self = (const Product *)object;
    tilus_matmul_call call = {.struct_size = sizeof call};
    tilus_stream stream;
    PyObject *out = named ? NULL : read_call(self, args, &call, &stream);
    if (!out) {
        PyErr_Clear();
        return PyObject_Call(self->slow, args, named);
    }
    tilus_status status;
    Py_BEGIN_ALLOW_THREADS
    status = ((RunFunction *)self->run)((tilus_matmul_plan *)self->handle, stream, &call);
    Py_END_ALLOW_THREADS
    if (!passed(self->check, status))
        Py_CLEAR(out);
    return out;
}

static PyObject *product_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    (void)named;
    PyObject *from;
    Product *self = (Product *)make(type, args, &from);
    if (self && !(read_integer(from, "device", &self->place) && read_integer(from, "n", &self->columns) &&
                  read_integer(from, "k", &self->k) &&
                  read_integer(from, "most_rows", &self->most_rows) &&
                  read_integer(from, "residual", &self->residual) &&
                  read_integer(from, "scaled", &self->scaled) &&
                  read_address(from, "run_address", &self->run) &&
                  read_address(from, "capturing_address", &self->capturing) &&
                  read_address(from, "handle", &self->handle) PRODUCT_HELD(READ)))
        Py_CLEAR(self);
    return (PyObject *)self;
}

static int product_traverse(PyObject *object, visitproc visit, void *arg)
{
    Product *self = (Product *)object;
    Py_VISIT(Py_TYPE(object));
    PRODUCT_HELD(VISIT)
    return 0;
}

static int product_clear(PyObject *object)
{
    Product *self = (Product *)object;
    PRODUCT_HELD(CLEAR)
    return 0;
}

static void product_dealloc(PyObject *object)
{
    destroy(object, product_clear);
}

/* ---- launches -------------------------------------------------------------------- */

/* `kinds`: a tuple that has for each argument "integer", "real", or the set of torch's types that
 * its pointer takes. */
#define LAUNCH_HELD(X) X(kinds) X(device) X(stream_of) X(current_device) X(check)

enum { MAX_ARGUMENTS = 64, SPECIAL_STREAMS = 2 };   /* 0 .. 2 are of the current context */

typedef tilus_status LaunchFunction(tilus_kernel *kernel, tilus_stream stream,
                                    const tilus_arg *args, size_t count, uint64_t workspace,
                                    size_t size);

typedef struct Argument {
    enum { POINTER, INTEGER, REAL } kind;
    PyObject *types;        /* of a pointer, borrowed of `kinds` */
    PyObject *last;         /* torch's type of the pointer's last tensor */
} Argument;

typedef struct Launch {
    PyObject_HEAD
    LAUNCH_HELD(DECLARE)
    Argument arguments[MAX_ARGUMENTS];
    int64_t place;
    Py_ssize_t count;
    uintptr_t launch, handle;
} Launch;

static bool read_pointer(Argument *argument, int64_t place, PyObject *tensor, uint64_t *out)
{
    PyObject *dtype = PyObject_GetAttr(tensor, names[NAME_dtype]);
    Py_XDECREF(dtype);      /* torch keeps its types */
    if (!dtype || (dtype != argument->last && PySet_Contains(argument->types, dtype) != 1))
        return false;
    argument->last = dtype;
    int64_t device;
    return ask(tensor, NAME_get_device, &device) && device == place && is_contiguous(tensor) &&
           address_of(tensor, out);
}

static bool read_argument(Argument *argument, int64_t place, PyObject *value, tilus_arg *out)
{
    switch (argument->kind) {
    case INTEGER:
        out->integer = PyLong_CheckExact(value) ? (int64_t)PyLong_AsUnsignedLongLongMask(value) : 0;
        return PyLong_CheckExact(value);
    case REAL:
        out->real = PyFloat_CheckExact(value) ? PyFloat_AsDouble(value) : 0;
        return PyFloat_CheckExact(value);
    case POINTER:
        break;
    }
    return read_pointer(argument, place, value, &out->pointer);
}

/* Takes the stream's address, or that of torch's current stream for None; special ones where the
 * device is the current one. */
static bool read_launch_stream(const Launch *self, PyObject *given, tilus_stream *out)
{
    int64_t address, current;
    if (given != Py_None)
        Py_INCREF(given);
    else
        given = PyObject_CallFunctionObjArgs(self->stream_of, self->device, NULL);
    if (!take_integer(given, &address))
        return false;
    *out = (tilus_stream)(uintptr_t)address;
    return address < 0 || address > SPECIAL_STREAMS ||
           (take_integer(PyObject_CallObject(self->current_device, NULL), &current) &&
            current == self->place);
}

static bool read_launch(Launch *self, PyObject *values, PyObject *given, tilus_arg *words,
                        tilus_stream *stream)
{
    if (!PyTuple_Check(values) || PyTuple_Size(values) != self->count)
        return false;
    for (Py_ssize_t i = 0; i < self->count; i++)
        if (!read_argument(&self->arguments[i], self->place, PyTuple_GetItem(values, i), &words[i]))
            return false;
    return read_launch_stream(self, given, stream);
}

/* Launches for (values, stream). Returns False, having done nothing, where Python is to look at
 * them. */
static PyObject *launch_call(PyObject *object, PyObject *args, PyObject *named)
{
    Launch *self = (Launch *)object;
    PyObject *values, *given;
    tilus_arg words[MAX_ARGUMENTS];
    tilus_stream stream;
    if (named || !PyArg_ParseTuple(args, "OO", &values, &given) ||
        !read_launch(self, values, given, words, &stream)) {
        PyErr_Clear();
        Py_RETURN_FALSE;
    }
    tilus_status status;
    Py_BEGIN_ALLOW_THREADS
    status = ((LaunchFunction *)self->launch)((tilus_kernel *)self->handle, stream, words,
                                              (size_t)self->count, 0, 0);
    Py_END_ALLOW_THREADS
    if (!passed(self->check, status))
        return NULL;
    Py_RETURN_TRUE;
}

static bool read_kinds(Launch *self)
{
    self->count = PyTuple_Check(self->kinds) ? PyTuple_Size(self->kinds) : -1;
    if (self->count < 0 || self->count > MAX_ARGUMENTS) {
        PyErr_Format(PyExc_ValueError, "%zd arguments, not 0 to %d", self->count, MAX_ARGUMENTS);
        return false;
    }
    for (Py_ssize_t i = 0; i < self->count; i++) {
        PyObject *kind = PyTuple_GetItem(self->kinds, i);
        bool is_number = PyUnicode_Check(kind);
        bool is_real = is_number && PyUnicode_CompareWithASCIIString(kind, "real") == 0;
        self->arguments[i].kind = is_real ? REAL : is_number ? INTEGER : POINTER;
        self->arguments[i].types = kind;
    }
    return true;
}

static PyObject *launch_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    (void)named;
    PyObject *from;
    Launch *self = (Launch *)make(type, args, &from);
    if (self && !(read_integer(from, "device", &self->place) &&
                  read_address(from, "launch_address", &self->launch) &&
                  read_address(from, "handle", &self->handle) LAUNCH_HELD(READ) &&
                  read_kinds(self)))
        Py_CLEAR(self);
    return (PyObject *)self;
}

static int launch_traverse(PyObject *object, visitproc visit, void *arg)
{
    Launch *self = (Launch *)object;
    Py_VISIT(Py_TYPE(object));
    LAUNCH_HELD(VISIT)
    return 0;
}

static int launch_clear(PyObject *object)
{
    Launch *self = (Launch *)object;
    LAUNCH_HELD(CLEAR)
    return 0;
}

static void launch_dealloc(PyObject *object)
{
    destroy(object, launch_clear);
}

/* ---- the module ------------------------------------------------------------------ */

#define SLOTS(prefix, text) \
    {Py_tp_doc, (void *)(text)}, {Py_tp_new, (void *)prefix##_new}, \
    {Py_tp_call, (void *)prefix##_call}, {Py_tp_traverse, (void *)prefix##_traverse}, \
    {Py_tp_clear, (void *)prefix##_clear}, {Py_tp_dealloc, (void *)prefix##_dealloc}, {0, NULL}

static PyType_Slot product_slots[] = {
    SLOTS(product, "Multiplies (a, packed, bias, residual, out[, a_scales]) on a plan's device.")};
static PyType_Slot launch_slots[] = {
    SLOTS(launch, "Launches a kernel for (values, stream); False: it has done nothing.")};
static PyType_Spec product_spec = {"tilusc._call.Product", sizeof(Product), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, product_slots};
static PyType_Spec launch_spec = {"tilusc._call.Launch", sizeof(Launch), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, launch_slots};

static bool intern_names(void)
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

static bool add_type(PyObject *module, const char *name, PyType_Spec *spec)
{
    PyObject *type = PyType_FromSpec(spec);
    if (type && PyModule_AddObject(module, name, type) == 0)
        return true;
    Py_XDECREF(type);
    return false;
}

PyMODINIT_FUNC PyInit__call(void)
{
    static struct PyModuleDef definition = {
        PyModuleDef_HEAD_INIT,
        .m_name = "_call",
        .m_doc = "Products and launches of torch tensors without ctypes.",
        .m_size = -1};
    PyObject *module = PyModule_Create(&definition);
    if (module && !(intern_names() && add_type(module, "Product", &product_spec) &&
                    add_type(module, "Launch", &launch_spec) &&
                    PyModule_AddIntConstant(module, "MAX_ARGUMENTS", MAX_ARGUMENTS) == 0))
        Py_CLEAR(module);
    return module;
}
