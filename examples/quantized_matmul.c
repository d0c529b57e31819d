/* C = A x B with 6-bit weights, from end to end, through the public API:
 *
 *   B (f32, random)  --quantize-->  i6 codes and one f32 scale a column
 *   codes            --@transform_b--> codes in the order that @matmul reads
 *   A (f16), codes, scales --@matmul--> C (f16), compared with f64 on the host
 *
 * Runs on the GPU when there is one, else on this machine's CPU. A result
 * that is wrong is a non-zero exit. */
#include "tilus/runtime.h"
#include "tilus/tilus.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { M = 64, N = 512, K = 1024, BITS = 6, MAX_ARGS = 8 };

/* The device; and the compute capability that the code is for when there is none. */
enum { DEVICE = 0, CAPABILITY = 90 };

#define TOLERANCE 1e-3

/* The value of one argument of a program, by its name. */
typedef struct Binding {
    const char *name;
    int64_t value;      /* of a scalar */
    void *data;         /* of a pointer; NULL for a scalar */
    size_t size;        /* bytes */
} Binding;

typedef struct Demo {
    const char *kernels;    /* directory of the program texts */
    const char *ptx_dir;    /* where the PTX goes */
    tilus_rt *rt;           /* NULL: the CPU runs everything */
} Demo;

/* The operands; see allocate() for their sizes. */
typedef struct Operands {
    float *weights;         /* [K, N] */
    unsigned char *codes;   /* [K, N] i6, compact */
    unsigned char *packed;  /* the same, rearranged */
    float *scales;          /* [N] */
    uint16_t *a;            /* [M, K] f16 */
    uint16_t *c;            /* [M, N] f16 */
} Operands;

static const size_t code_bytes = (size_t)K * N * BITS / 8;

static bool fail(const char *what, const char *why)
{
    fprintf(stderr, "error: %s: %s\n", what, why);
    return false;
}

static bool fail_diag(const tilus_diag *diag)
{
    tilus_diag_write(diag, NULL, NULL);
    return false;
}

/* ---- data ----------------------------------------------------------- */

static double random_unit(void)
{
    static uint64_t state = 42;     /* SplitMix64 */
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static double random_normal(void)
{
    double radius = sqrt(-2 * log(1 - random_unit()));
    return radius * cos(6.283185307179586 * random_unit());
}

static bool allocate(Operands *x)
{
    x->weights = calloc((size_t)K * N, sizeof *x->weights);
    x->codes = calloc(code_bytes, 1);
    x->packed = calloc(code_bytes, 1);
    x->scales = calloc(N, sizeof *x->scales);
    x->a = calloc((size_t)M * K, sizeof *x->a);
    x->c = calloc((size_t)M * N, sizeof *x->c);
    if (!x->weights || !x->codes || !x->packed || !x->scales || !x->a || !x->c)
        return fail("operands", "out of memory");
    return true;
}

static void release(Operands *x)
{
    free(x->weights);
    free(x->codes);
    free(x->packed);
    free(x->scales);
    free(x->a);
    free(x->c);
}

static void fill(Operands *x)
{
    for (size_t i = 0; i < (size_t)K * N; i++)
        x->weights[i] = (float)random_normal();
    for (size_t i = 0; i < (size_t)M * K; i++)
        x->a[i] = (uint16_t)tilus_encode("f16", random_normal());
}

/* weights[:, j] = scales[j] * codes[:, j], nearly: the largest magnitude of a
 * column becomes the largest code. */
static void quantize(Operands *x)
{
    for (size_t j = 0; j < N; j++) {
        float largest = 0;
        for (size_t k = 0; k < K; k++)
            largest = fmaxf(largest, fabsf(x->weights[k * N + j]));
        x->scales[j] = largest > 0 ? largest / (float)tilus_type_max("i6") : 1;
        for (size_t k = 0; k < K; k++) {
            double value = x->weights[k * N + j] / x->scales[j];
            tilus_set_bits(x->codes, k * N + j, BITS, tilus_encode("i6", value));
        }
    }
}

/* ---- running one program -------------------------------------------- */

/* Reads a whole text file; the caller frees it. */
static char *read_text(const char *path, size_t *size)
{
    char *text = NULL;
    FILE *in = fopen(path, "rb");
    long end = in && fseek(in, 0, SEEK_END) == 0 ? ftell(in) : -1;
    if (end >= 0 && fseek(in, 0, SEEK_SET) == 0 && (text = malloc((size_t)end + 1)))
        *size = fread(text, 1, (size_t)end, in);
    if (!text)
        fail(path, errno ? strerror(errno) : "cannot be read");
    if (in)
        fclose(in);
    return text;
}

static bool write_ptx(const Demo *demo, const char *program, const char *ptx)
{
    char path[4096];
    int len = snprintf(path, sizeof path, "%s/%s.ptx", demo->ptx_dir, program);
    if ((size_t)len >= sizeof path)
        return fail(demo->ptx_dir, "path too long");
    FILE *out = fopen(path, "wb");
    bool written = out && fputs(ptx, out) >= 0;
    if (out && fclose(out) != 0)
        written = false;
    if (!written)
        return fail(path, strerror(errno));
    printf("PTX of @%-12s %s\n", program, path);
    return true;
}

/* The target of the code, which without a device is only printed. */
static const char *target_of(const Demo *demo)
{
    return tilus_target_for(demo->rt ? tilus_rt_compute_capability(demo->rt, DEVICE)
                                     : CAPABILITY);
}

/* The PTX of the whole module; the caller frees it. */
static char *compile(const Demo *demo, tilus_module *module)
{
    tilus_compile_options options = {.struct_size = sizeof options,
                                     .cpu = target_of(demo), .opt_level = 3,
                                     .output = TILUS_OUTPUT_PTX};
    if (!options.cpu) {
        fail(tilus_rt_device_name(demo->rt, DEVICE), "no target for this device");
        return NULL;
    }
    const tilus_pass_options passes = {.struct_size = sizeof passes,
                                       .verify_each = true, .target = options.cpu};
    if (!tilus_run_passes(module, NULL, &passes))
        return NULL;
    return tilus_compile(module, &options, NULL);
}

/* Puts the bindings in the order of the program's arguments. */
static bool bind(const tilus_kernel_info *info, const Binding *bindings, size_t count,
                 Binding ordered[MAX_ARGS])
{
    if (info->arg_count > MAX_ARGS)
        return fail(info->name, "more arguments than this program knows");
    for (size_t i = 0; i < info->arg_count; i++) {
        size_t j = 0;
        while (j < count && strcmp(bindings[j].name, info->args[i].name) != 0)
            j++;
        if (j == count)
            return fail(info->args[i].name, "an argument that this program does not know");
        ordered[i] = bindings[j];
    }
    return true;
}

/* Runs what the passes made of the program. */
static bool run_on_cpu(tilus_module *module, const char *program, const Binding *bound,
                       size_t count, const tilus_diag *diag)
{
    tilus_arg args[MAX_ARGS];
    tilus_buffer buffers[MAX_ARGS] = {{0}};
    for (size_t i = 0; i < count; i++) {
        args[i].integer = bound[i].value;
        if (!bound[i].data)
            continue;
        buffers[i] = (tilus_buffer){bound[i].data, bound[i].size};
        args[i].pointer = i;
    }
    const tilus_cpu_options options = {.struct_size = sizeof options,
                                       .cpu = tilus_target_for(CAPABILITY)};
    tilus_status status = tilus_run_on_cpu(module, program, args, count, buffers, count,
                                           &options, NULL);
    return status == TILUS_OK || (fail(program, tilus_status_name(status)), fail_diag(diag));
}

/* Copies the data to the device. Addresses are kept for download, whatever
 * happens. */
static tilus_status upload(tilus_rt *rt, const Binding *bound, size_t count, tilus_arg *args)
{
    tilus_status status = TILUS_OK;
    for (size_t i = 0; i < count && status == TILUS_OK; i++) {
        args[i].integer = bound[i].value;
        if (!bound[i].data)
            continue;
        status = tilus_rt_allocate(rt, DEVICE, bound[i].size, &args[i].pointer);
        if (status == TILUS_OK)
            status = tilus_rt_upload(rt, DEVICE, args[i].pointer, bound[i].data,
                                     bound[i].size);
    }
    return status;
}

static tilus_status launch(const Demo *demo, const char *ptx, const tilus_kernel_info *info,
                           const tilus_arg *args)
{
    const tilus_artefact artefact = {.info = info, .target = target_of(demo), .ptx = ptx};
    tilus_kernel *kernel;
    tilus_status status = tilus_kernel_create(demo->rt, &artefact, &kernel);
    if (status == TILUS_OK)
        status = tilus_kernel_prepare(kernel, DEVICE);
    if (status == TILUS_OK)
        status = tilus_launch(kernel, NULL, args, info->arg_count, 0, 0);
    if (status == TILUS_OK)
        status = tilus_rt_synchronize(demo->rt, DEVICE);
    tilus_kernel_unload(kernel);
    return status;
}

static bool run_on_gpu(const Demo *demo, const char *ptx, const tilus_kernel_info *info,
                       const Binding *bound)
{
    tilus_rt *rt = demo->rt;
    tilus_arg args[MAX_ARGS] = {{0}};
    tilus_status status = upload(rt, bound, info->arg_count, args);
    if (status == TILUS_OK)
        status = launch(demo, ptx, info, args);
    for (size_t i = 0; i < info->arg_count && status == TILUS_OK; i++)
        if (bound[i].data)
            status = tilus_rt_download(rt, DEVICE, bound[i].data, args[i].pointer,
                                       bound[i].size);
    if (status != TILUS_OK)
        fail(info->name, tilus_rt_error());
    for (size_t i = 0; i < info->arg_count; i++)
        if (bound[i].data && args[i].pointer)
            tilus_rt_release(rt, DEVICE, args[i].pointer);
    return status == TILUS_OK;
}

/* Compiles a parsed program, keeps its PTX and runs it. */
static bool run_module(const Demo *demo, tilus_module *module, const tilus_diag *diag,
                       const char *program, const Binding *bindings, size_t count)
{
    Binding bound[MAX_ARGS];
    char *ptx = compile(demo, module);
    const tilus_kernel_info *info = tilus_module_kernel_info(module, program);
    bool ok = ptx && info ? true : fail_diag(diag);
    ok = ok && write_ptx(demo, program, ptx) && bind(info, bindings, count, bound);
    if (ok)
        ok = demo->rt ? run_on_gpu(demo, ptx, info, bound)
                      : run_on_cpu(module, program, bound, info->arg_count, diag);
    tilus_free(ptx);
    return ok;
}

/* Runs `program` of kernels/<file> on the data that `bindings` name. */
static bool run_program(const Demo *demo, const char *file, const char *program,
                        const Binding *bindings, size_t count)
{
    char path[4096];
    size_t size = 0;
    snprintf(path, sizeof path, "%s/%s", demo->kernels, file);
    char *text = read_text(path, &size);
    if (!text)
        return false;
    tilus_diag *diag = tilus_diag_new();
    tilus_module *module = diag ? tilus_parse(diag, path, text, size, 1, NULL, 0) : NULL;
    bool ok = false;
    if (module)
        ok = run_module(demo, module, diag, program, bindings, count);
    else if (diag)
        ok = fail_diag(diag);
    tilus_module_free(module);
    tilus_diag_free(diag);
    free(text);
    return ok;
}

/* ---- the operator --------------------------------------------------- */

static bool pack(const Demo *demo, Operands *x)
{
    const Binding bindings[] = {
        {.name = "b", .data = x->codes, .size = code_bytes},
        {.name = "bt", .data = x->packed, .size = code_bytes},
        {.name = "k", .value = K},
        {.name = "n", .value = N},
    };
    return run_program(demo, "transform_b.tilus", "transform_b", bindings,
                       sizeof bindings / sizeof *bindings);
}

static bool multiply(const Demo *demo, Operands *x)
{
    const Binding bindings[] = {
        {.name = "a", .data = x->a, .size = sizeof *x->a * M * K},
        {.name = "b", .data = x->packed, .size = code_bytes},
        {.name = "s", .data = x->scales, .size = sizeof *x->scales * N},
        {.name = "c", .data = x->c, .size = sizeof *x->c * M * N},
        {.name = "m", .value = M},
        {.name = "n", .value = N},
        {.name = "k", .value = K},
    };
    return run_program(demo, "matmul_f16_i6_scaled.tilus", "matmul", bindings,
                       sizeof bindings / sizeof *bindings);
}

/* scales[j] * codes[:, j]: the weights as the kernel sees them, in f64. The
 * caller frees them. */
static double *dequantize(const Operands *x)
{
    double *weights = malloc((size_t)K * N * sizeof *weights);
    for (size_t i = 0; weights && i < (size_t)K * N; i++)
        weights[i] = x->scales[i % N] * tilus_decode("i6", tilus_get_bits(x->codes, i, BITS));
    return weights;
}

/* One row of C in f64: a row of A (f16) times `weights`. */
static void reference_row(const uint16_t *a, const double *weights, double row[N])
{
    memset(row, 0, N * sizeof *row);
    for (size_t k = 0; k < K; k++) {
        double value = tilus_decode("f16", a[k]);
        for (size_t j = 0; j < N; j++)
            row[j] += value * weights[k * N + j];
    }
}

/* Prints and judges the error of C; `squared` holds the squares of the
 * Frobenius norms of the error and of the reference. */
static bool judge(double largest, const double squared[2])
{
    double relative = sqrt(squared[0] / squared[1]);
    printf("max error              %.4g\n", largest);
    printf("relative error         %.3e (Frobenius; allowed %.0e)\n", relative, TOLERANCE);
    printf("norm of the reference  %.6g\n", sqrt(squared[1]));
    if (squared[1] == 0)
        return fail("result", "the reference is all zero");
    if (!(relative <= TOLERANCE))       /* NaN is wrong too */
        return fail("result", "wrong");
    return true;
}

/* Compares C with a plain f64 product on the host. */
static bool check(const Operands *x)
{
    double row[N], largest = 0, squared[2] = {0};
    double *weights = dequantize(x);
    if (!weights)
        return fail("reference", "out of memory");
    for (size_t i = 0; i < M; i++) {
        reference_row(&x->a[i * K], weights, row);
        for (size_t j = 0; j < N; j++) {
            double error = tilus_decode("f16", x->c[i * N + j]) - row[j];
            if (!(fabs(error) <= largest))
                largest = fabs(error);
            squared[0] += error * error;
            squared[1] += row[j] * row[j];
        }
    }
    free(weights);
    return judge(largest, squared);
}

/* ---- main ----------------------------------------------------------- */

static bool read_options(Demo *demo, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--kernels") == 0 && i + 1 < argc)
            demo->kernels = argv[++i];
        else if (strcmp(argv[i], "--ptx-dir") == 0 && i + 1 < argc)
            demo->ptx_dir = argv[++i];
        else
            return false;
    }
    return demo->kernels != NULL;
}

/* Only a missing device makes the CPU the engine; any other failure is one. */
static bool choose_engine(Demo *demo)
{
    char message[1024];
    tilus_status status = tilus_rt_open(NULL, &demo->rt, message, sizeof message);
    if (status == TILUS_OK)
        printf("engine                 GPU: %s\n", tilus_rt_device_name(demo->rt, DEVICE));
    else if (status == TILUS_ERROR_NO_DRIVER || status == TILUS_ERROR_NO_DEVICE)
        printf("engine                 CPU (%s)\n", message);
    else
        return fail("GPU", message);
    return true;
}

int main(int argc, char **argv)
{
    Demo demo = {.ptx_dir = "."};
    Operands x = {0};
    if (!read_options(&demo, argc, argv)) {
        fprintf(stderr, "usage: %s --kernels DIR [--ptx-dir DIR]\n", argv[0]);
        return 2;
    }
    bool ok = choose_engine(&demo) && allocate(&x);
    if (ok) {
        printf("C[%d, %d] = A[%d, %d] (f16) x B[%d, %d] (i6, one scale a column)\n",
               M, N, M, K, K, N);
        fill(&x);
        quantize(&x);
        ok = pack(&demo, &x) && multiply(&demo, &x) && check(&x);
    }
    puts(ok ? "PASSED" : "FAILED");
    release(&x);
    tilus_rt_close(demo.rt);
    return ok ? 0 : 1;
}
