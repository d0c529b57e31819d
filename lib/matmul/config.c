/* Problems, the template's parameters for them, and where kernels of it run. */
#include "matmul/config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- problems --------------------------------------------------------------- */

enum { N_MAX = 1 << 20, K_MAX = 1 << 23 };

typedef struct Message {
    char *data;
    size_t size;
} Message;

static bool __attribute__((format(printf, 2, 3))) fail(Message to, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(to.data, to.size, format, args);
    va_end(args);
    return false;
}

static DType find_type(const char *name)
{
    return dtype_find(name, strlen(name));
}

/* `type` is the one that `name` spells, NULL being `usual`; it is in `allowed`. */
static bool choose(DType *type, const char *field, const char *name, DType usual,
                   const DType *allowed, const char *list, Message message)
{
    *type = name ? find_type(name) : usual;
    for (; *allowed != DTYPE_none; allowed++)
        if (*type == *allowed)
            return true;
    return fail(message, "%s is \"%s\", which is none of %s", field, name, list);
}

static bool check_weights(MatmulSpec *s, const char *name, Message message)
{
    if (!name)
        return fail(message, "weights is NULL, and has no default");
    s->weights = find_type(name);
    const DTypeInfo *info = &dtype_info[s->weights];
    if (s->weights == DTYPE_none || info->bits > 8 || info->kind == DKIND_BOOL ||
        info->special == SPECIAL_E8M0)
        return fail(message, "weights is \"%s\", which is none of u1 to u8, i1 to i8 and the "
                    "floats f3e1m1 to f8e7m0", name);
    s->codes = s->weights;
    if (info->kind == DKIND_INT) {
        const char unsigned_name[] = {'u', (char)('0' + info->bits), '\0'};
        s->codes = find_type(unsigned_name);
        s->offset = 1 << (info->bits - 1);
    }
    return true;
}

static bool check_types(MatmulSpec *s, const tilus_matmul_problem *p, Message message)
{
    static const DType activations[] = {DTYPE_f16, DTYPE_bf16, DTYPE_f8e4m3, DTYPE_f8e5m2,
                                        DTYPE_i8, DTYPE_none};
    static const DType scales[] = {DTYPE_f16, DTYPE_bf16, DTYPE_none};
    static const DType results[] = {DTYPE_f16, DTYPE_bf16, DTYPE_f32, DTYPE_none};
    return check_weights(s, p->weights, message) &&
           choose(&s->activations, "activations", p->activations, DTYPE_f16, activations,
                  "f16, bf16, f8e4m3, f8e5m2 and i8", message) &&
           choose(&s->scales, "scales", p->scales,
                  s->activations == DTYPE_bf16 ? DTYPE_bf16 : DTYPE_f16, scales,
                  "f16 and bf16", message) &&
           choose(&s->result, "result", p->result, s->scales, results, "f16, bf16 and f32",
                  message);
}

/* The product's type, and how far sums are scaled up there so that the small powers of two
 * that decoded weights lack stay normal in A: 2^-24 of integers beside A's 2^3, of floats
 * the distance between the biases of the exponents. bf16 has room for 2^60. */
static void choose_product(MatmulSpec *s)
{
    const DTypeInfo *w = &dtype_info[s->weights];
    bool wide = dtype_is_float(s->weights) && dtype_max(s->weights) > dtype_max(DTYPE_f16);
    s->product = s->activations == DTYPE_bf16 || wide ? DTYPE_bf16 : DTYPE_f16;
    int bias = w->exponent > 1 ? (1 << (w->exponent - 1)) - 1 : 0;
    s->residual_exponent = s->product == DTYPE_bf16          ? -60
                           : dtype_is_float(s->weights) ? 3 + bias - 15
                                                        : 3 - 24;
}

static bool check_sizes(MatmulSpec *s, const tilus_matmul_problem *p, Message message)
{
    if (p->n < 1 || p->n > N_MAX)
        return fail(message, "n is %lld, not 1 to %d", (long long)p->n, N_MAX);
    if (p->k < 1 || p->k > K_MAX)
        return fail(message, "k is %lld, not 1 to %d", (long long)p->k, K_MAX);
    bool whole = p->group >= 0 && p->group % MATMUL_UNIT_K == 0;
    if (!whole && p->group != 32 && p->group != 64)
        return fail(message, "group is %lld, not 0, 32, 64 or a multiple of %d",
                    (long long)p->group, MATMUL_UNIT_K);
    s->n = p->n;
    s->k = p->k;
    s->group = p->group > MATMUL_UNIT_K ? MATMUL_UNIT_K : (int)p->group;
    s->repeats = p->group > MATMUL_UNIT_K ? p->group / MATMUL_UNIT_K : 1;
    return true;
}

static bool check_options(MatmulSpec *s, const tilus_matmul_problem *p, Message message)
{
    if ((unsigned)p->zeros > TILUS_ZEROS_FLOAT)
        return fail(message, "zeros is %d, not a tilus_zeros", (int)p->zeros);
    if (p->zeros == TILUS_ZEROS_INTEGER && dtype_is_float(s->weights))
        return fail(message, "zeros is TILUS_ZEROS_INTEGER, but weights is \"%s\", whose zero "
                    "points are floats", p->weights);
    if ((unsigned)p->function > TILUS_EPILOGUE_GELU)
        return fail(message, "function is %d, not a tilus_epilogue", (int)p->function);
    s->zeros = p->zeros;
    s->function = p->function;
    s->bias = p->bias;
    s->residual = p->residual;
    return true;
}

bool matmul_spec(const tilus_matmul_problem *problem, MatmulSpec *spec, char *message,
                 size_t size)
{
    Message to = {message, size};
    *spec = (MatmulSpec){0};
    if (!check_types(spec, problem, to) || !check_sizes(spec, problem, to) ||
        !check_options(spec, problem, to))
        return false;
    choose_product(spec);
    return true;
}

/* ---- parameters and names ----------------------------------------------------- */

enum { PARAMETERS_MAX = 32 };

/* A value of -D. `tag` leads it in names, where the number 0 is left out; NULL: what others
 * imply, and names lack. */
typedef struct Parameter {
    const char *key, *tag;
    DType type;             /* DTYPE_none: a number */
    int number;
} Parameter;

typedef struct ParameterList {
    Parameter items[PARAMETERS_MAX];
    int count;
} ParameterList;

static void add_type(ParameterList *list, bool wanted, const char *key, const char *tag, DType t)
{
    if (wanted)
        list->items[list->count++] = (Parameter){key, tag, t, 0};
}

static void add_number(ParameterList *list, bool wanted, const char *key, const char *tag,
                       int number)
{
    if (wanted)
        list->items[list->count++] = (Parameter){key, tag, DTYPE_none, number};
}

/* Which of its parameters each program depends on, and W with U, which must suit each other
 * in all programs of the text. @prepare sees of the weights what their decoding leaves to A,
 * and only whether sums begin at zero points or at the offset. */
static ParameterList list_parameters(const MatmulSpec *s, const MatmulConfig *c,
                                     MatmulProgram program)
{
    ParameterList l = {.count = 0};
    bool pack = program == MATMUL_PACK || program == MATMUL_PACK_ACROSS;
    bool prepare = program == MATMUL_PREPARE, product = program == MATMUL_PRODUCT;
    bool zeros = s->zeros != TILUS_ZEROS_NONE;
    int zero = prepare ? zeros : (int)s->zeros;
    int offset = prepare && zeros ? 0 : pack && s->zeros != TILUS_ZEROS_INTEGER ? 0 : s->offset;
    add_type(&l, true, "W", prepare ? NULL : "", prepare ? s->codes : s->weights);
    add_type(&l, true, "U", prepare ? "" : NULL, s->codes);
    add_type(&l, prepare || product, "A", "", s->activations);
    add_type(&l, true, "T", "", s->product);
    add_type(&l, !prepare, "S", "", s->scales);
    add_type(&l, product, "C", "", s->result);
    add_number(&l, true, "OFFSET", prepare ? "o" : NULL, offset);
    add_number(&l, true, "GROUP", "g", s->group);
    add_number(&l, true, "ZERO", "z", zero);
    add_number(&l, prepare || product, "SCALED", "l", c->scaled);
    add_number(&l, prepare || product, "RS", NULL, c->scaled ? 0 : s->residual_exponent);
    add_number(&l, !prepare, "ROWS", "r", c->rows);
    add_number(&l, product, "RWARPS", "x", c->rwarps);
    add_number(&l, product, "KWARPS", "w", c->kwarps);
    add_number(&l, product, "DEEP", "e", c->deep);
    add_number(&l, product, "BLOCKS", "b", c->per_sm > 1 ? c->per_sm : 1);
    add_number(&l, product, "PREPARED", "p", c->prepared);
    add_number(&l, product, "STAGES", "s", c->stages);
    add_number(&l, prepare || product, "COLUMNS", "c", c->columns);
    add_number(&l, prepare || product, "TILES", "t", c->tiles);
    add_number(&l, product, "BIAS", "bias", s->bias);
    add_number(&l, product, "RESIDUAL", "residual", s->residual);
    add_number(&l, product, "FUNCTION", "function", (int)s->function);
    add_number(&l, !pack, "DIVISOR", "d", matmul_divisor(s));
    add_number(&l, pack, "REPEATS", "x", (int)s->repeats);
    add_number(&l, pack, "TRANSPOSED", "across", program == MATMUL_PACK_ACROSS);
    return l;
}

const char *matmul_program_name(MatmulProgram program)
{
    static const char *const names[MATMUL_PROGRAMS] = {
        [MATMUL_PACK] = "pack",       [MATMUL_PACK_ACROSS] = "pack",
        [MATMUL_PREPARE] = "prepare", [MATMUL_PRODUCT] = "matmul",
        [MATMUL_DECODE] = "decode",
    };
    return names[program];
}

void matmul_parameters(const MatmulSpec *spec, const MatmulConfig *config,
                       MatmulProgram program, char text[static MATMUL_TEXT_MAX])
{
    ParameterList list = list_parameters(spec, config, program);
    size_t at = 0;
    for (int i = 0; i < list.count; i++) {
        const Parameter *p = &list.items[i];
        const char *gap = i ? " " : "";
        int n = p->type ? snprintf(text + at, MATMUL_TEXT_MAX - at, "%s%s=%s", gap, p->key,
                                   dtype_name(p->type))
                        : snprintf(text + at, MATMUL_TEXT_MAX - at, "%s%s=%d", gap, p->key,
                                   p->number);
        at += (size_t)n;
    }
}

void matmul_name(const MatmulSpec *spec, const MatmulConfig *config, MatmulProgram program,
                 const char *target, char name[static MATMUL_NAME_MAX])
{
    ParameterList list = list_parameters(spec, config, program);
    size_t at = (size_t)snprintf(name, MATMUL_NAME_MAX, "%s", matmul_program_name(program));
    for (int i = 0; i < list.count; i++) {
        const Parameter *p = &list.items[i];
        if (!p->tag || (!p->type && p->number == 0))
            continue;
        int n = p->type ? snprintf(name + at, MATMUL_NAME_MAX - at, "-%s", dtype_name(p->type))
                        : snprintf(name + at, MATMUL_NAME_MAX - at, "-%s%d", p->tag, p->number);
        at += (size_t)n;
    }
    snprintf(name + at, MATMUL_NAME_MAX - at, "-%.16s", target);
}

/* ---- sizes ------------------------------------------------------------------- */

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t round_up(int64_t a, int64_t to)
{
    return ceil_div(a, to) * to;
}

int64_t matmul_slices(const MatmulSpec *spec)
{
    int64_t slices = ceil_div(spec->k, MATMUL_UNIT_K);
    for (int64_t to = 8; to > 2; to /= 2)
        if ((round_up(slices, to) - slices) * 16 <= slices)
            return round_up(slices, to);
    return round_up(slices, 2);
}

int64_t matmul_unit_bytes(const MatmulSpec *spec, int rows)
{
    int64_t codes = (int64_t)rows * MATMUL_UNIT_K * dtype_bits(spec->weights) / 8;
    if (spec->group == 0)
        return codes;
    int64_t zero = spec->zeros == TILUS_ZEROS_NONE ? 0 : spec->zeros == TILUS_ZEROS_INTEGER ? 1 : 2;
    return codes + (int64_t)rows * (MATMUL_UNIT_K / spec->group) * (2 + zero);
}

int matmul_divisor(const MatmulSpec *spec)
{
    int vector = 128 / (int)dtype_bits(spec->activations);
    return spec->k % MATMUL_UNIT_K == 0 ? MATMUL_UNIT_K : spec->k % vector == 0 ? vector : 1;
}

/* Rows of a tile, and units along k of a round. */
static int64_t tile_rows(const MatmulConfig *c)
{
    return (int64_t)c->rwarps * c->rows;
}

static int64_t round_units(const MatmulConfig *c)
{
    return (int64_t)c->kwarps * c->deep;
}

int64_t matmul_rounds(const MatmulSpec *spec, const MatmulConfig *config)
{
    return ceil_div(spec->n, tile_rows(config)) * (matmul_slices(spec) / round_units(config));
}

int64_t matmul_blocks(const MatmulSpec *spec, const MatmulConfig *config, int multiprocessors)
{
    int64_t rounds = matmul_rounds(spec, config);
    int64_t blocks = config->per_sm ? (int64_t)config->per_sm * multiprocessors
                                    : ceil_div(spec->n, tile_rows(config));
    return blocks < rounds ? blocks : rounds;
}

/* ---- devices ------------------------------------------------------------------ */

/* Beside the blocks' own, each block takes 1 KiB of a multiprocessor's shared memory, which
 * is also what one block cannot have of it (CUDA's programming guide, compute capability 8
 * and 9). */
enum { SHARED_SYSTEM = 1024 };

static const struct {
    const char *name;
    double bandwidth;       /* as measured with reads of many times the L2, bytes a us */
} known_devices[] = {
    {"NVIDIA H200", 4.57e6},
};

MatmulDevice matmul_device(const char *name, int multiprocessors, int64_t shared_block)
{
    MatmulDevice d = {name, multiprocessors, shared_block, shared_block + SHARED_SYSTEM,
                      multiprocessors * 2.4e4};
    for (size_t i = 0; i < sizeof known_devices / sizeof *known_devices; i++)
        if (strcmp(name, known_devices[i].name) == 0)
            d.bandwidth = known_devices[i].bandwidth;
    return d;
}

/* ---- what a block takes ----------------------------------------------------------- */

/* The ring, with A where it comes through it, two or three mbarriers of 8 bytes a stage
 * (whose arrays begin at multiples of 16), and the warps' sums in columns of 4 more than the
 * rows, the last without them. */
int64_t matmul_shared_bytes(const MatmulSpec *spec, const MatmulConfig *c)
{
    int64_t groups = spec->group ? MATMUL_UNIT_K / spec->group : 1;
    int64_t sums = groups * (c->columns > 2 ? c->columns : 2);
    int64_t panels = 4 * c->tiles * (64 * c->columns + round_up(sums, 4));
    int64_t unit = c->rwarps * matmul_unit_bytes(spec, c->rows) + (c->prepared > 1 ? panels : 0);
    int64_t barriers = (c->prepared > 1 ? 2 : 1) * round_up(8 * c->stages, 16) + 8 * c->stages;
    int64_t parts = (int64_t)c->kwarps * 8 * c->tiles * (tile_rows(c) + 4) * 4 - 16;
    return c->stages * round_units(c) * unit + barriers + parts;
}

/* A warp takes part in the product, or keeps the ring full. */
static int warps_of_block(const MatmulConfig *c)
{
    return c->rwarps * c->kwarps + (c->stages > 0);
}

/* Registers come to a warp in eights a thread, out of the quarter of 16384 that it lives on. */
static int warps_a_quarter(int registers)
{
    return 16384 / (32 * (int)round_up(registers, 8));
}

/* What ptxas takes for sm_90a: a part by the rows, a register for each word of codes, and
 * sums and activations of tiles beyond the first. It is held to what lets one block run. */
int matmul_registers(const MatmulSpec *spec, const MatmulConfig *c)
{
    int rows = c->rows <= 32 ? 88 : c->rows <= 64 ? 119 : 135;
    int codes = c->rows * (int)dtype_bits(spec->weights) / 8;
    return rows + codes + (c->tiles - 1) * (c->rows / 2 + 16);
}

static int registers_limit(const MatmulConfig *c)
{
    int limit = 16384 / (32 * (int)ceil_div(warps_of_block(c), 4)) / 8 * 8;
    return limit < 255 ? limit : 255;
}

int matmul_resident(const MatmulSpec *spec, const MatmulConfig *c, const MatmulDevice *device)
{
    int registers = matmul_registers(spec, c), limit = registers_limit(c);
    int by_registers = 4 * warps_a_quarter(registers < limit ? registers : limit) /
                       warps_of_block(c);
    int64_t by_shared = device->shared_sm / (matmul_shared_bytes(spec, c) + SHARED_SYSTEM);
    int64_t blocks = by_shared < by_registers ? by_shared : by_registers;
    return matmul_shared_bytes(spec, c) > device->shared_block ? 0 : (int)blocks;
}

static bool is_one_of(int value, const int *values)
{
    while (*values >= 0 && *values != value)
        values++;
    return *values == value && value >= 0;
}

static const int all_rows[] = {32, 64, 128, -1}, all_warps[] = {1, 2, 4, 8, -1};
static const int all_deep[] = {1, 2, 4, -1};
static const int all_stages[] = {0, 2, 3, 4, 6, 8, -1}, all_powers[] = {1, 2, 4, 8, -1};

bool matmul_config_fits(const MatmulSpec *spec, const MatmulConfig *c,
                        const MatmulDevice *device)
{
    enum { STAGES_MAX = 64, PER_SM_MAX = 32, SPILLED = 40 };
    if (!is_one_of(c->rows, all_rows) || !is_one_of(c->kwarps, all_warps) || c->stages < 0 ||
        c->stages > STAGES_MAX || c->per_sm < 0 || c->per_sm > PER_SM_MAX ||
        !is_one_of(c->rwarps, all_deep) || !is_one_of(c->deep, all_deep) || tile_rows(c) > 256 ||
        c->rwarps * c->kwarps > 16 || c->prepared < 0 || c->prepared > 2 ||
        (c->prepared == 2 && c->stages == 0) || !is_one_of(c->columns, all_powers) || !is_one_of(c->tiles, all_powers) ||
        (c->tiles > 1 && c->columns < 8))
        return false;
    if (matmul_slices(spec) % round_units(c) ||
        matmul_registers(spec, c) > registers_limit(c) + SPILLED)
        return false;
    return matmul_resident(spec, c, device) > 0;
}

/* ---- the space ---------------------------------------------------------------------- */

int64_t matmul_bucket(int64_t m)
{
    int64_t bucket = 1;
    while (bucket < m)
        bucket *= 2;
    return bucket;
}

typedef struct Space {
    const MatmulSpec *spec;
    const MatmulDevice *device;
    void (*visit)(void *data, const MatmulConfig *config);
    void *data;
} Space;

/* As many blocks as stay on the device, one less, and one for each tile. */
static void visit_blocks(const Space *s, MatmulConfig c)
{
    int most = matmul_resident(s->spec, &c, s->device);
    for (c.per_sm = most; c.per_sm >= 0; c.per_sm--)
        if (matmul_config_fits(s->spec, &c, s->device))
            s->visit(s->data, &c);
}

static void visit_warps(const Space *s, MatmulConfig c)
{
    for (const int *rwarps = all_deep; *rwarps >= 0; rwarps++)
        for (const int *kwarps = all_warps; *kwarps >= 0; kwarps++)
            for (const int *deep = all_deep; *deep >= 0; deep++) {
                c.rwarps = *rwarps;
                c.kwarps = *kwarps;
                c.deep = *deep;
                visit_blocks(s, c);
            }
}

static void visit_rings(const Space *s, MatmulConfig c)
{
    for (const int *rows = all_rows; *rows >= 0; rows++)
        for (const int *stages = all_stages; *stages >= 0; stages++)
            for (int prepared = 0; prepared < 2; prepared++) {
                c.rows = *rows;
                c.stages = *stages;
                c.prepared = prepared && *stages ? 2 : prepared;
                visit_warps(s, c);
            }
}

void matmul_enumerate(const MatmulSpec *spec, int64_t m, const MatmulDevice *device,
                      void (*visit)(void *data, const MatmulConfig *config), void *data)
{
    Space s = {spec, device, visit, data};
    int64_t bucket = matmul_bucket(m);
    MatmulConfig c = {.columns = bucket < 8 ? (int)bucket : 8};
    for (c.tiles = 1; c.tiles == 1 || (c.tiles <= 4 && 8 * c.tiles <= bucket); c.tiles *= 2)
        visit_rings(&s, c);
}
