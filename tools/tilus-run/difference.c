/* The difference of two buffers, element by element. */
#include "difference.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* ---- measuring ------------------------------------------------------ */

/* Returns true when two numbers differ without a finite distance. */
static bool is_mismatch(double a, double b)
{
    bool both_nan = isnan(a) && isnan(b);
    return !both_nan && a != b && (!isfinite(a) || !isfinite(b));
}

/* Element `i`, whose codes are `x` and `y`. */
static void count_codes(Difference *d, size_t i, uint64_t x, uint64_t y, double a, double b)
{
    bool both_nan = isnan(a) && isnan(b);
    if (x != y && !both_nan && d->unequal++ == 0)
        d->first = i;
    d->mismatches += x != y && is_mismatch(a, b);
    d->nans += both_nan;
    if (isfinite(a) && isfinite(b) && fabs(a - b) > d->largest) {
        d->largest = fabs(a - b);
        d->largest_at = i;
    }
}

Difference difference_measure(const Pair *p)
{
    Difference d = {0};
    unsigned bits = tilus_type_bits(p->type);
    double difference = 0, norm = 0;        /* squared */
    for (size_t i = 0; i < p->count; i++) {
        uint64_t x = tilus_get_bits(p->got, i, bits);
        uint64_t y = tilus_get_bits(p->reference, i, bits);
        double a = tilus_decode(p->type, x), b = tilus_decode(p->type, y);
        count_codes(&d, i, x, y, a, b);
        if (isfinite(a) && isfinite(b))
            difference += (a - b) * (a - b);
        if (isfinite(b))
            norm += b * b;
    }
    d.norm = sqrt(norm);
    d.relative = difference == 0 ? 0 : sqrt(difference) / d.norm;
    return d;
}

/* ---- printing ------------------------------------------------------- */

void difference_print(const Pair *p, const Difference *d)
{
    printf("%s: %zu elements, ", p->name, p->count);
    if (d->unequal == 0)
        printf("bitwise equal");
    else
        printf("%zu unequal, max error %.3g, relative error %.3g", d->unequal, d->largest,
               d->relative);
    if (d->mismatches)
        printf(", %zu of NaN or infinity", d->mismatches);
    if (d->nans)
        printf(", NaN in both %zu", d->nans);
    printf(", reference norm %.6g\n", d->norm);
}

static void print_index(const Shape *shape, size_t element)
{
    size_t index[SHAPE_RANK] = {element};
    unsigned rank = shape->rank ? shape->rank : 1;
    for (unsigned d = shape->rank; d-- > 0;) {
        index[d] = element % (size_t)shape->extents[d];
        element /= (size_t)shape->extents[d];
    }
    for (unsigned d = 0; d < rank; d++)
        printf("%s%zu", d ? ", " : "[", index[d]);
    putchar(']');
}

/* A code and the number that it means, in as many digits as tell it from others. */
static void print_code(const char *type, const void *data, size_t element)
{
    unsigned bits = tilus_type_bits(type);
    uint64_t code = tilus_get_bits(data, element, bits);
    printf("0x%0*" PRIx64 " = ", (int)(bits + 3) / 4, code);
    if (tilus_type_is_float(type))
        printf("%.*g", bits > 32 ? 17 : 9, tilus_decode(type, code));
    else if (type[0] == 'i')
        printf("%" PRId64, (int64_t)(code << (64 - bits)) >> (64 - bits));
    else
        printf("%" PRIu64, code);
}

static void print_element(const Pair *p, size_t element)
{
    print_index(p->shape, element);
    printf(" is ");
    print_code(p->type, p->got, element);
    printf(", the reference ");
    print_code(p->type, p->reference, element);
    putchar('\n');
}

void difference_print_elements(const Pair *p, const Difference *d)
{
    if (d->unequal == 0)
        return;
    printf("%s: the first of %zu unequal elements, ", p->name, d->unequal);
    print_element(p, d->first);
    if (d->largest == 0)
        return;         /* only NaN, infinity, or a sign of zero */
    printf("%s: the largest error, %.6g, ", p->name, d->largest);
    print_element(p, d->largest_at);
}
