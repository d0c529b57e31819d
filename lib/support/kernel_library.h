/* The frame of the libraries on the runtime (matrix products, big integers, attention): options,
 * kernels that are found by their names and loaded once for all plans, launches, failures. Each of
 * these libraries has it inside; the compiler does not. */
#ifndef TILUS_SUPPORT_KERNEL_LIBRARY_H
#define TILUS_SUPPORT_KERNEL_LIBRARY_H

#include "tilus/runtime.h"

#include <pthread.h>
#include <stdatomic.h>

/* ---- failures ----------------------------------------------------------- */

/* Keeps the text for tilus_rt_error, and returns the status. */
tilus_status library_fail(tilus_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
#define library_refuse(...) library_fail(TILUS_ERROR_ARGUMENT, __VA_ARGS__)
tilus_status library_fail_memory(void);
/* Refuses a handle, or where a result goes, that the caller has not given. */
#define library_refuse_null(pointer) library_refuse("%s is NULL", #pointer)

/* Copies the caller's struct, an `object` ("problem"), to `to`, of `type`; NULL is refused. */
#define LIBRARY_TAKE(type, to, from, object) \
    library_take((type *){(to)}, sizeof(type), (const type *){(from)}, object, #type)
/* Copies options, which may be NULL: then `to` stays as it is. */
#define LIBRARY_TAKE_OPTIONS(type, to, from) \
    ((from) ? LIBRARY_TAKE(type, to, from, "options") : TILUS_OK)
tilus_status library_take(void *to, size_t size, const void *from, const char *object,
                          const char *name);

/* Refuses an address that is 0 or not a multiple of `align`, a field called `name`. */
tilus_status library_check_address(const char *name, uint64_t address, unsigned align);

/* An address of a call ("call: q"): whether the problem has such a tensor, and its alignment. */
typedef struct Address {
    const char *field;
    uint64_t address;
    unsigned align;
    bool wanted;
} Address;

/* Refuses the first address that is wanted and wrong, or given and not wanted. */
tilus_status library_check_addresses(const Address all[], size_t count);

/* Holds the memory that a call gives: tensors, and a workspace aligned to TILUS_WORKSPACE_ALIGN. */
typedef struct CallMemory {
    const Address *tensors;
    size_t count;
    const char *field;          /* "call: workspace" */
    uint64_t workspace;
    size_t workspace_size;
} CallMemory;

/* Refuses wrong tensors, and a workspace of fewer than `size` bytes or of another alignment.
 * `reason`, a format, names what needs these bytes: ", and the shape needs". */
tilus_status library_check_memory(const CallMemory *memory, size_t size, const char *reason, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- kernels ------------------------------------------------------------ */

/* An artefact in memory: the fields of tilus_matmul_kernel and its like. */
typedef struct KernelBytes {
    const char *name;
    const void *bytes;
    size_t size;
} KernelBytes;

typedef tilus_status KernelCompiler(void *data, const char *program, const char *parameters,
                                    const char *target, void **bytes, size_t *size,
                                    char *message, size_t message_size);

/* Options that every library has, under these names. */
typedef struct KernelOptions {
    const void *kernels;            /* of the layout of KernelBytes */
    size_t kernel_count;
    const char *directory;
    KernelCompiler *compile;
    void *compile_data;
} KernelOptions;

#define KERNEL_OPTIONS(o)                                                                     \
    ((KernelOptions){(o)->kernels, (o)->kernel_count, (o)->directory, (o)->compile,           \
                     (o)->compile_data})

/* Numbers of arguments in the order in which a kernel takes them: each library counts the names
 * that its kernels use. */
enum { KERNEL_ARGUMENTS_MAX = 48 };
typedef struct ArgumentOrder {
    size_t count;
    unsigned char numbers[KERNEL_ARGUMENTS_MAX];
} ArgumentOrder;

/* Finds a kernel's arguments among `count` names, at most KERNEL_ARGUMENTS_MAX. False: the one of
 * number order->count has another name, or is one too many. */
bool argument_order_find(const char *const names[], size_t count, const tilus_kernel_info *info,
                         ArgumentOrder *order);

/* Says that a kernel takes the argument where argument_order_find stopped, which is unknown. */
tilus_status argument_order_refuse(const char *kernel, const tilus_kernel_info *info,
                                   const ArgumentOrder *order);

/* Puts values, by their numbers, into a kernel's order, as tilus_launch takes them. */
void argument_order_apply(const ArgumentOrder *order, const tilus_arg values[], tilus_arg args[]);

enum { KERNEL_NAME_MAX = 192, KERNEL_PARAMETERS_MAX = 512 };      /* bytes, with the NUL */

/* A program with its parameters for a target, once for all plans of a library. */
typedef struct Kernel {
    struct Kernel *next;
    struct KernelLibrary *library;
    const char *program, *target;       /* static storage */
    int number;                         /* of the program, as the library counts */
    char name[KERNEL_NAME_MAX], parameters[KERNEL_PARAMETERS_MAX];
    pthread_mutex_t lock;               /* of loading */
    ArgumentOrder order;                /* of the loaded kernel */
    _Atomic(tilus_kernel *) loaded;     /* NULL: not yet; then as it is */
    _Atomic(struct KernelSequence *) sequences;     /* that end with it */
} Kernel;

/* Finds kernel->order, or fails with TILUS_ERROR_ARTEFACT: the artefact is of another version of
 * the library. */
typedef tilus_status KernelCheck(Kernel *kernel, const tilus_kernel_info *info);

typedef struct KernelLibrary {
    tilus_rt *rt;
    KernelOptions options;
    char *directory;                    /* options.directory, a copy */
    KernelCheck *check;
    pthread_mutex_t lock;               /* of `kernels` */
    Kernel *kernels;
} KernelLibrary;

/* Makes a library of `size` bytes, zeros after its frame, which it begins with. Copies the
 * directory's name. Returns NULL after a failure, of *status. */
void *kernel_library_open(size_t size, tilus_rt *rt, const KernelOptions *options,
                          KernelCheck *check, tilus_status *status);

/* Frees a library that begins with this frame, when nothing that it launched runs. */
void kernel_library_close(KernelLibrary *library);

/* Returns the kernel of that name and target, which imply its parameters; it is made like `wanted`
 * where there is none. Loads nothing. NULL: out of memory. Thread safe. */
Kernel *kernel_library_find(KernelLibrary *library, const Kernel *wanted);

/* Finds the artefact and loads it; takes no lock when that was done before. Thread safe. */
tilus_status kernel_load(Kernel *kernel);

/* Loads the kernel, and makes it ready on the device. Thread safe. */
tilus_status kernel_prepare(Kernel *kernel, int device);

/* Launches a loaded kernel with values of all that it takes, by their numbers. */
tilus_status kernel_launch(Kernel *kernel, tilus_stream stream, const tilus_arg values[]);

/* A launch, with values of all that its program takes, by their numbers. */
typedef struct KernelLaunch {
    Kernel *kernel;
    tilus_arg args[KERNEL_ARGUMENTS_MAX];
} KernelLaunch;

/* Makes the sequence of prepared kernels, where there is none yet, for launches with
 * KERNEL_HOST_FAST: 2 to TILUS_SEQUENCE_KERNELS, in the order of launches. Thread safe. */
tilus_status kernels_join(Kernel *const kernels[], size_t count);

/* How launches are enqueued: one by one, so that the first may begin before those in front have
 * ended, or by the sequence that was made of their kernels, which takes the host less time. */
typedef enum KernelHaste { KERNEL_FIRST_EARLY, KERNEL_HOST_FAST } KernelHaste;

/* Loads the kernels, where they are not, and enqueues the launches in order, on the device's
 * primary context where `stream` is special. */
tilus_status kernel_library_launch(const KernelLibrary *library, int device, tilus_stream stream,
                                   const KernelLaunch launches[], size_t count,
                                   KernelHaste haste);

/* Calls enqueue(data, stream), on the device's primary context where `stream` is NULL or another
 * special one, which belongs to the current context. */
typedef tilus_status KernelEnqueue(const void *data, tilus_stream stream);
tilus_status kernel_library_enqueue(tilus_rt *rt, int device, tilus_stream stream,
                                    KernelEnqueue *enqueue, const void *data);

#endif
