/* The operations of a launch's products, and the floor that they and its bytes give. */
#include "launch.h"

#include "ir/loop.h"
#include "ir/product.h"

#include <math.h>
#include <string.h>

/* Steps of counting, of a launch, in vain or not; more are not worth the wait. */
enum { STEPS = 1 << 22 };

typedef struct Count {
    Place place;
    double operations[DTYPE_COUNT];     /* by the type of a and b */
    double times;                       /* how often the op that is met runs */
    long steps;
    bool unknown;
} Count;

static void count_region(Count *c, const Region *r);

/* ---- products ------------------------------------------------------------------------ */

/* k of a product: the last dimension of a, or of dot_async both of its last ones. */
static int64_t depth_of(const Op *op)
{
    const Type *a = op->operands[0]->type;
    if (op->code == OP_dot)
        return type_extent(a, a->rank - 1);
    return side_extent(a, product_side(op, op->results[0]->type, 0, true));
}

static void count_product(Count *c, const Op *op)
{
    const Type *sums = op->results[0]->type;
    double each = 2.0 * (double)depth_of(op);
    for (unsigned i = 0; i < sums->rank; i++)
        each *= (double)type_extent(sums, i);
    c->operations[op->operands[0]->type->dtype] += c->times * each;
}

/* ---- control ------------------------------------------------------------------------- */

/* Counts a body once for all iterations, if it is the same in each; false: it is not. */
static bool count_at_once(Count *c, const Op *op, int64_t iterations)
{
    Count once = *c;
    once.times *= (double)iterations;
    count_region(&once, op->regions[0]);
    c->steps = once.steps;
    if (once.unknown)
        return false;
    once.times = c->times;
    *c = once;
    return true;
}

static void count_iterations(Count *c, const Op *op, int64_t lower, int64_t step,
                             int64_t iterations)
{
    unsigned n = c->place.depth;
    if (n == PLACE_LOOPS || iterations > STEPS) {
        c->unknown = true;
        return;
    }
    c->place.depth++;
    c->place.loops[n].index = for_index(op);
    for (int64_t i = 0; i < iterations && !c->unknown; i++) {
        c->place.loops[n].number = lower + i * step;
        count_region(c, op->regions[0]);
    }
    c->place.depth--;
}

static void count_for(Count *c, const Op *op)
{
    int64_t lower, upper, step = 1, span;
    const Expr *by = op_expr(op, ATTR_STEP);
    if (!place_evaluate(&c->place, op_expr(op, ATTR_LOWER), &lower) ||
        !place_evaluate(&c->place, op_expr(op, ATTR_UPPER), &upper) ||
        (by && !place_evaluate(&c->place, by, &step)) || step < 1 ||
        __builtin_sub_overflow(upper, lower, &span)) {
        c->unknown = true;
        return;
    }
    int64_t iterations = span <= 0 ? 0 : (span - 1) / step + 1;
    if (iterations && !count_at_once(c, op, iterations))
        count_iterations(c, op, lower, step, iterations);
}

static void count_if(Count *c, const Op *op)
{
    int64_t condition;
    if (place_evaluate(&c->place, op_expr(op, ATTR_COND), &condition))
        count_region(c, op->regions[condition ? 0 : 1]);
    else
        c->unknown = true;
}

static bool is_other(Op *op, void *data)
{
    (void)data;
    return op->code != OP_dot && op->code != OP_dot_async;
}

static bool has_products(const Op *op)
{
    for (unsigned i = 0; i < op->region_count; i++)
        if (!region_walk(op->regions[i], is_other, NULL))
            return true;
    return false;
}

static void count_op(Count *c, const Op *op)
{
    c->unknown |= ++c->steps > STEPS;
    if (op->code == OP_dot || op->code == OP_dot_async)
        count_product(c, op);
    else if (!op->region_count || !has_products(op))
        return;
    else if (op->code == OP_for)
        count_for(c, op);
    else if (op->code == OP_if)
        count_if(c, op);
    else if (op->code == OP_thread_group)
        count_region(c, op->regions[0]);
    else
        c->unknown = true;
}

static void count_region(Count *c, const Region *r)
{
    for (const Op *op = r->first; op && !c->unknown; op = op->next)
        count_op(c, op);
}

/* ---- launches ---------------------------------------------------------------------------- */

static void count_blocks(Count *c, const Program *p, const int64_t *grid)
{
    int64_t block[3];
    c->place.block = block;
    c->unknown = false;
    for (block[0] = 0; block[0] < grid[0] && !c->unknown; block[0]++)
        for (block[1] = 0; block[1] < grid[1] && !c->unknown; block[1]++)
            for (block[2] = 0; block[2] < grid[2] && !c->unknown; block[2]++)
                count_region(c, p->body);
    c->place.block = NULL;
}

/* Counts a block that stands for all of them or, where blocks differ, each one. */
static void count_launch(Count *c, const Program *p, const int64_t *grid)
{
    Count any = *c;
    any.times = (double)grid[0] * (double)grid[1] * (double)grid[2];
    count_region(&any, p->body);
    if (!any.unknown)
        *c = any;
    else
        count_blocks(c, p, grid);
}

void launch_operations(Explain *e, json_t *launch, const Arguments *a, const int64_t *grid)
{
    Count c = {.place.arguments = a, .times = 1, .unknown = !grid};
    if (grid)
        count_launch(&c, module_find_program(e->module, a->info->name), grid);
    json_t *operations = c.unknown ? json_null() : json_object();
    for (DType t = DTYPE_none + 1; !c.unknown && t < DTYPE_COUNT; t++)
        if (c.operations[t] > 0)
            doc_put(e, operations, dtype_name(t), json_real(c.operations[t]));
    doc_put(e, launch, "operations", operations);
}

/* ---- the floor ------------------------------------------------------------------------------ */

/* Rates of a device: TB/s of its memory, 10^12 operations a second of dense products. */
typedef struct Peak {
    const char *key;
    double memory, half, f8, i8, tf32;
} Peak;

static const Peak *find_peak(const char *device)
{
    static const Peak peaks[] = {
#define PEAK(key, memory, half, f8, i8, tf32) {key, memory, half, f8, i8, tf32},
#include "peaks.def"
    };
    const tilus_device_description *d = tilus_find_device(device);
    for (size_t i = 0; d && d->key && i < COUNT(peaks); i++)
        if (!strcmp(peaks[i].key, d->key))
            return &peaks[i];
    return NULL;
}

/* The rate of products of elements of this type; 0: unknown. */
static double rate_of(const Peak *p, const char *type)
{
    unsigned bits = tilus_type_bits(type);
    double byte = *type == 'f' ? p->f8 : p->i8;
    return bits == 16 ? p->half : bits == 8 ? byte : !strcmp(type, "tf32") ? p->tf32 : 0;
}

/* Microseconds of the products at the device's rates; NAN: unknown. */
static double products_us(const json_t *operations, const Peak *p)
{
    const char *type;
    json_t *count;
    double us = json_is_object(operations) && p ? 0 : NAN;
    json_object_foreach((json_t *)operations, type, count) {
        double rate = p ? rate_of(p, type) : 0;
        us += rate > 0 ? json_real_value(count) / rate / 1e6 : NAN;
    }
    return us;
}

void launch_floor(Explain *e, json_t *launch)
{
    const Peak *p = find_peak(e->settings->device);
    double bandwidth = e->settings->bandwidth > 0 ? e->settings->bandwidth : p ? p->memory : 0;
    const json_t *bytes = json_object_get(launch, "bytes");
    double products = products_us(json_object_get(launch, "operations"), p);
    double memory = json_is_integer(bytes) && bandwidth > 0
                        ? (double)json_integer_value(bytes) / bandwidth / 1e6 : NAN;
    double floor_us = fmax(memory, products);   /* of a NAN and a number the number */
    doc_put(e, launch, "bandwidth", bandwidth > 0 ? json_real(bandwidth) : json_null());
    doc_put(e, launch, "floor_us", isnan(floor_us) ? json_null() : json_real(floor_us));
    doc_put(e, launch, "floor_by", isnan(floor_us) ? json_null()
                                   : doc_text(floor_us == products ? "products" : "bytes"));
}
