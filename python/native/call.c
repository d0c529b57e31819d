/* The module tilusc._call: products and launches of torch tensors without ctypes.
 *
 * Its objects take calls whose arguments are right, and hand all others, and what is to be said of
 * them, to a function of Python, whose checks are the same. The limited API of Python 3.9 makes it
 * one file for all later versions. Without it the package does the same by ctypes, more slowly. */
#include "tensor.h"

#include "tilus/matmul.h"
#include "tilus/runtime.h"

#include <stddef.h>

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

/* `types`: of torch's tensors. `samples`: empty tensors of A's type, C's, f32 and bytes, at C's
 * place. `checked`: a dictionary of tuples by the address of weights whose identity was found right,
 * the first of each a weak reference to their tensor. `ready`: bytes of workspace by the bits of
 * m - 1. `streams`: address and bytes of the workspace of (device, stream). What those two have once,
 * they keep. `slow`: Python's function, which takes what is left. `n`: C's columns. */
#define PRODUCT_HELD(X) \
    X(types) X(samples) X(checked) X(ready) X(streams) X(device) X(stream_of) X(check) X(slow) X(n)

typedef tilus_status RunFunction(tilus_matmul_plan *plan, tilus_stream stream,
                                 const tilus_matmul_call *call);
typedef int CapturingFunction(tilus_stream stream, int *status);    /* the driver's */

enum { ROWS_BITS = 64, KNOWN_WEIGHTS = 64 };
enum { SAMPLE_A, SAMPLE_C, SAMPLE_F32, SAMPLE_BYTES, SAMPLES };

/* Weights that were found right: the tensor at their address, a weak reference, or NULL. The
 * address alone would be another tensor's when that one is gone. */
typedef struct Weights {
    uint64_t address;
    PyObject *tensor;
} Weights;

/* The workspace of a stream. */
typedef struct Workspace {
    tilus_stream stream;
    uint64_t address;
    int64_t size;
} Workspace;

typedef struct Product {
    PyObject_HEAD
    PRODUCT_HELD(DECLARE)
    TensorReader reader;
    ElementType element[SAMPLES];
    int64_t place, columns, k, most_rows, packed_bytes, biases;
    int64_t residual, scaled, biased;   /* 0 or 1 */
    uintptr_t run, handle, capturing;
    Weights known[KNOWN_WEIGHTS];       /* of `checked`, by their hash */
    int64_t needed[ROWS_BITS];          /* of `ready`, or 0 */
    Workspace last;                     /* of `streams`, or of 0 bytes */
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

/* Reads a tensor of a sample's type at the product's place. */
static bool read_tensor(const Product *self, PyObject *tensor, int sample, Tensor *out)
{
    return tensor_read(&self->reader, tensor, out) && out->place == self->place &&
           element_type_is(out->type, self->element[sample]);
}

/* Takes A of two dimensions whose rows have no gaps inside. */
static bool read_rows(const Product *self, PyObject *a, tilus_matmul_call *call)
{
    Tensor t;
    if (!read_tensor(self, a, SAMPLE_A, &t) || t.dimensions != 2 || t.shape[1] != self->k ||
        t.shape[0] < 1 || t.shape[0] > self->most_rows || t.stride[1] != 1)
        return false;
    call->a = t.address;
    call->m = t.shape[0];
    call->a_stride = t.stride[0];
    return true;
}

/* Describes what a tensor must have; 0 dimensions: any, of extent[0] elements. */
typedef struct Shape {
    int dimensions;
    int64_t extent[2];
} Shape;

static bool has_shape(const Tensor *tensor, Shape shape)
{
    if (shape.dimensions == 0)
        return tensor_count(tensor) == shape.extent[0];
    bool same = tensor->dimensions == shape.dimensions;
    for (int i = 0; same && i < shape.dimensions; i++)
        same = tensor->shape[i] == shape.extent[i];
    return same;
}

/* Takes a tensor of a shape without gaps where one is wanted, else None. */
static bool read_added(const Product *self, PyObject *tensor, bool wanted, int sample, Shape shape,
                       uint64_t *out)
{
    Tensor t;
    if (tensor == Py_None || !wanted)
        return tensor == Py_None && !wanted;
    if (!read_tensor(self, tensor, sample, &t) || !has_shape(&t, shape) ||
        !tensor_is_contiguous(&t))
        return false;
    *out = t.address;
    return true;
}

/* Returns what a dictionary has at a key, which it gives back, borrowed; NULL: nothing. */
static PyObject *find(PyObject *dictionary, PyObject *key)
{
    PyObject *value = key ? PyDict_GetItemWithError(dictionary, key) : NULL;
    Py_XDECREF(key);
    return value;
}

/* Returns where weights are remembered, whose addresses differ in few bits. */
static Weights *place_of(Product *self, uint64_t address)
{
    enum { ODD = 0x9e3779b1, BITS_LEFT = 58 };      /* for 64 places */
    uint64_t mixed = address * ((uint64_t)ODD << 32 | ODD);
    return &self->known[mixed >> BITS_LEFT];
}

/* Tells whether a weak reference is to `object`. */
static bool refers_to(PyObject *reference, const PyObject *object)
{
    PyObject *now = reference ? PyObject_CallObject(reference, NULL) : NULL;
    Py_XDECREF(now);
    return now == object;
}

/* Tells whether `checked` has a tensor, at an address, and remembers it then. */
static bool find_checked(Product *self, PyObject *tensor, uint64_t address, Weights *out)
{
    PyObject *have = find(self->checked, PyLong_FromUnsignedLongLong(address));
    PyObject *reference = have ? PyTuple_GetItem(have, 0) : NULL;
    if (!refers_to(reference, tensor))
        return false;
    Py_INCREF(reference);
    PyObject *before = out->tensor;
    *out = (Weights){.address = address, .tensor = reference};
    Py_XDECREF(before);
    return true;
}

/* Takes weights whose identity was found right before, and the bias with them. */
static bool read_weights(Product *self, const Operands *t, tilus_matmul_call *call)
{
    const Shape packed = {0, {self->packed_bytes}}, bias = {1, {self->biases}};
    if (!read_added(self, t->packed, true, SAMPLE_BYTES, packed, &call->weights) ||
        !read_added(self, t->bias, self->biased, SAMPLE_C, bias, &call->bias))
        return false;
    Weights *known = place_of(self, call->weights);
    return (known->address == call->weights && refers_to(known->tensor, t->packed)) ||
           find_checked(self, t->packed, call->weights, known);
}

static int bit_length(int64_t value)
{
    int bits = 0;
    for (; value > 0; value >>= 1)
        bits++;
    return bits;
}

/* Tells how much workspace m rows are prepared for; 0: they are not. */
static int64_t needed_for(Product *self, int64_t m)
{
    int bits = bit_length(m - 1);
    PyObject *need =
        self->needed[bits] ? NULL : find(self->ready, PyLong_FromLong(bits));
    if (need)
        self->needed[bits] = PyLong_AsLongLong(need);
    return self->needed[bits];
}

/* Finds the workspace that a stream has now. */
static bool find_workspace(const Product *self, PyObject *stream, Workspace *out)
{
    unsigned long long address;
    long long size;
    PyObject *have = find(self->streams, PyTuple_Pack(2, self->device, stream));
    if (!have || !PyArg_ParseTuple(have, "KL", &address, &size))
        return false;
    *out = (Workspace){.stream = (tilus_stream)PyLong_AsVoidPtr(stream), .address = address,
                       .size = size};
    return true;
}

/* Lends the stream's workspace, where it is large enough for what m rows are prepared for. */
static bool read_workspace(Product *self, PyObject *stream, tilus_matmul_call *call)
{
    int64_t needed = needed_for(self, call->m);
    if (needed == 0)
        return false;
    bool fits = self->last.size >= needed && self->last.stream == PyLong_AsVoidPtr(stream);
    if (!fits && (!find_workspace(self, stream, &self->last) || self->last.size < needed))
        return false;
    call->workspace = self->last.address;
    call->workspace_size = (size_t)self->last.size;
    return true;
}

/* Tells whether no graph is captured from a stream, by the driver: torch takes 0.3 us longer. */
static bool is_plain(const Product *self, tilus_stream stream)
{
    int status = 0;
    return ((CapturingFunction *)self->capturing)(stream, &status) == 0 && status == 0;
}

/* Takes torch's current stream where no graph is captured. */
static bool read_stream(Product *self, tilus_matmul_call *call, tilus_stream *out)
{
    PyObject *stream = PyObject_CallFunctionObjArgs(self->stream_of, self->device, NULL);
    bool ok = stream && read_workspace(self, stream, call);
    Py_XDECREF(stream);
    *out = self->last.stream;
    return ok && is_plain(self, *out);
}

/* Makes C. Returns a new reference, or NULL. */
static PyObject *make_out(const Product *self, tilus_matmul_call *call)
{
    PyObject *like = PyTuple_GetItem(self->samples, SAMPLE_C);
    PyObject *out = tensor_make_matrix(like, call->m, self->n);
    if (out && !tensor_read_address(&self->reader, out, &call->c))
        Py_CLEAR(out);
    return out;
}

/* Takes `out`, [m, n] without gaps, or makes one. Returns a new reference, or NULL. */
static PyObject *take_out(const Product *self, PyObject *out, tilus_matmul_call *call)
{
    Tensor t;
    if (out == Py_None)
        return make_out(self, call);
    if (!read_tensor(self, out, SAMPLE_C, &t) || t.dimensions != 2 || t.shape[0] != call->m ||
        t.shape[1] != self->columns || !tensor_is_contiguous(&t))
        return NULL;
    call->c = t.address;
    Py_INCREF(out);
    return out;
}

/* Fills a call. Returns its C, a new reference; NULL: Python is to look at it. */
static PyObject *read_call(Product *self, PyObject *args, tilus_matmul_call *call,
                           tilus_stream *stream)
{
    Operands t;
    if (!read_operands(args, &t) || !read_rows(self, t.a, call) || !read_weights(self, &t, call) ||
        !read_added(self, t.residual, self->residual, SAMPLE_C,
                    (Shape){2, {call->m, self->columns}}, &call->residual) ||
        !read_added(self, t.a_scales, self->scaled, SAMPLE_F32, (Shape){0, {call->m}},
                    &call->a_scales) ||
        !read_stream(self, call, stream))
        return NULL;
    return take_out(self, t.out, call);
}

static PyObject *product_call(PyObject *object, PyObject *args, PyObject *named)
{
    Product *self = (Product *)object;
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

/* Learns the types of samples in both ways. */
static bool read_samples(Product *self)
{
    for (int i = 0; i < SAMPLES; i++) {
        Tensor t;
        PyObject *sample = PyTuple_GetItem(self->samples, i);
        if (!sample || !tensor_read(&self->reader, sample, &t))
            return false;
        self->element[i] =
            (ElementType){.object = tensor_type_object(sample), .bits = t.type.bits};
    }
    return true;
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
                  read_integer(from, "biased", &self->biased) &&
                  read_integer(from, "biases", &self->biases) &&
                  read_integer(from, "packed_bytes", &self->packed_bytes) &&
                  read_address(from, "run_address", &self->run) &&
                  read_address(from, "capturing_address", &self->capturing) &&
                  read_address(from, "handle", &self->handle) PRODUCT_HELD(READ) &&
                  tensor_find_reader(self->types, &self->reader) && read_samples(self)))
        Py_CLEAR(self);
    return (PyObject *)self;
}

static int product_traverse(PyObject *object, visitproc visit, void *arg)
{
    Product *self = (Product *)object;
    Py_VISIT(Py_TYPE(object));
    PRODUCT_HELD(VISIT)
    for (int i = 0; i < KNOWN_WEIGHTS; i++)
        Py_VISIT(self->known[i].tensor);
    return 0;
}

static int product_clear(PyObject *object)
{
    Product *self = (Product *)object;
    PRODUCT_HELD(CLEAR)
    for (int i = 0; i < KNOWN_WEIGHTS; i++)
        Py_CLEAR(self->known[i].tensor);
    return 0;
}

static void product_dealloc(PyObject *object)
{
    destroy(object, product_clear);
}

/* ---- launches -------------------------------------------------------------------- */

/* `types`: of torch's tensors. `kinds`: a tuple that has for each argument "integer", "real", or the set of torch's types that
 * its pointer takes. */
#define LAUNCH_HELD(X) X(types) X(kinds) X(device) X(stream_of) X(current_device) X(check)

enum { MAX_ARGUMENTS = 64, SPECIAL_STREAMS = 2 };   /* 0 .. 2 are of the current context */

typedef tilus_status LaunchFunction(tilus_kernel *kernel, tilus_stream stream,
                                    const tilus_arg *args, size_t count, uint64_t workspace,
                                    size_t size);

typedef struct Argument {
    enum { POINTER, INTEGER, REAL } kind;
    PyObject *types;        /* of a pointer, borrowed of `kinds` */
    ElementType last;       /* of the pointer's last tensor */
} Argument;

typedef struct Launch {
    PyObject_HEAD
    LAUNCH_HELD(DECLARE)
    TensorReader reader;
    Argument arguments[MAX_ARGUMENTS];
    int64_t place;
    Py_ssize_t count;
    uintptr_t launch, handle;
} Launch;

/* Tells whether a pointer takes tensors of a type, which it remembers. */
static bool takes(Argument *argument, PyObject *tensor, ElementType type)
{
    if (element_type_is(type, argument->last))
        return true;
    PyObject *object = tensor_type_object(tensor);
    if (!object || PySet_Contains(argument->types, object) != 1)
        return false;
    argument->last = (ElementType){.object = object, .bits = type.bits};
    return true;
}

static bool read_pointer(Launch *self, Argument *argument, PyObject *tensor, uint64_t *out)
{
    Tensor t;
    if (!tensor_read(&self->reader, tensor, &t) || t.place != self->place ||
        !takes(argument, tensor, t.type) || !tensor_is_contiguous(&t))
        return false;
    *out = t.address;
    return true;
}

static bool read_argument(Launch *self, Argument *argument, PyObject *value, tilus_arg *out)
{
    int overflow = 0;
    switch (argument->kind) {
    case INTEGER:
        out->integer = PyLong_CheckExact(value) ? PyLong_AsLongLongAndOverflow(value, &overflow) : 0;
        return PyLong_CheckExact(value) && !overflow;
    case REAL:
        out->real = PyFloat_CheckExact(value) ? PyFloat_AsDouble(value) : 0;
        return PyFloat_CheckExact(value);
    case POINTER:
        break;
    }
    return read_pointer(self, argument, value, &out->pointer);
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
        if (!read_argument(self, &self->arguments[i], PyTuple_GetItem(values, i), &words[i]))
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
                  tensor_find_reader(self->types, &self->reader) && read_kinds(self)))
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
    if (module && !(tensor_intern_names() && add_type(module, "Product", &product_spec) &&
                    add_type(module, "Launch", &launch_spec) &&
                    PyModule_AddIntConstant(module, "MAX_ARGUMENTS", MAX_ARGUMENTS) == 0))
        Py_CLEAR(module);
    return module;
}
