/* Modules of program text, and how a program ends on each engine. */
#include "outcome.h"

#include "support/bits.h"
#include "support/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- text --------------------------------------------------------------- */

Parsed parsed_new(const char *text, size_t len)
{
    Parsed p = {.diag = tilus_diag_new()};
    p.module = tilus_parse(p.diag, "random.tilus", text, len, 1, NULL, 0);
    return p;
}

void parsed_release(Parsed p)
{
    tilus_module_free(p.module);
    tilus_diag_free(p.diag);
}

const char *parsed_print(const Parsed *p, Arena *arena)
{
    char *text = tilus_print(p->module);
    const char *copy = arena_strdup(arena, text ? text : "");
    free(text);
    return copy;
}

const char *text_fixpoint_fault(const char *text, Arena *arena)
{
    Parsed again = parsed_new(text, strlen(text));
    const char *fault = NULL;
    if (!again.module) {
        tilus_diag_write(again.diag, NULL, NULL);
        fault = "printed text is refused";
    } else if (strcmp(text, parsed_print(&again, arena)) != 0) {
        fault = "printed text is no fixpoint";
    }
    parsed_release(again);
    return fault;
}

/* ---- runs --------------------------------------------------------------- */

static void keep_printed(void *printer, const char *text, size_t len)
{
    text_add_n(printer, text, len);
}

static tilus_buffer *copy_buffers(const GenProgram *g, Arena *arena)
{
    tilus_buffer *copies = arena_array(arena, tilus_buffer, g->buffer_count);
    for (size_t i = 0; i < g->buffer_count; i++)
        copies[i] = (tilus_buffer){arena_copy(arena, g->buffers[i].data, g->buffers[i].size),
                                   g->buffers[i].size};
    return copies;
}

const char *parsed_error(const Parsed *p)
{
    for (size_t i = 0; i < tilus_diag_count(p->diag); i++)
        if (tilus_diag_severity(p->diag, i) == TILUS_SEVERITY_ERROR)
            return tilus_diag_text(p->diag, i);
    return "";
}

static void keep_messages(Outcome *o, const Parsed *p, Text *printed, Arena *arena)
{
    o->printed = text_string(printed);
    o->message = arena_strdup(arena, parsed_error(p));
}

Outcome outcome_interpreted(const GenProgram *g, const Parsed *p, Arena *arena)
{
    Text printed;
    text_init(&printed, arena);
    tilus_interpret_options options = {.struct_size = sizeof options,
                                       .print = keep_printed, .printer = &printed};
    Outcome o = {.buffers = copy_buffers(g, arena)};
    o.status = tilus_interpret(p->module, GEN_PROGRAM_NAME, g->args, g->arg_count, o.buffers,
                               g->buffer_count, &options);
    keep_messages(&o, p, &printed, arena);
    return o;
}

Outcome outcome_on_cpu(const GenProgram *g, const Parsed *p, const tilus_cpu_options *options,
                       Arena *arena)
{
    Text printed;
    text_init(&printed, arena);
    tilus_cpu_options with_printer = *options;
    with_printer.print = keep_printed;
    with_printer.printer = &printed;
    Outcome o = {.buffers = copy_buffers(g, arena)};
    o.status = tilus_run_on_cpu(p->module, GEN_PROGRAM_NAME, g->args, g->arg_count, o.buffers,
                                g->buffer_count, &with_printer, NULL);
    keep_messages(&o, p, &printed, arena);
    return o;
}

/* ---- comparison --------------------------------------------------------- */

static bool same_error(const char *a, const char *b)
{
    const char *end = strrchr(a, ':');
    return end ? strncmp(a, b, (size_t)(end - a)) == 0 : strcmp(a, b) == 0;
}

static bool same_code(DType t, uint64_t a, uint64_t b, bool free_nans)
{
    return a == b || (free_nans && dtype_has_nan(t) && dtype_bits(t) > 8 &&
                      isnan(dtype_decode(t, a)) && isnan(dtype_decode(t, b)));
}

/* Elements, then the bits behind the last one. */
static const char *buffer_difference(const GenProgram *g, size_t number, const void *expected,
                                     const void *got, bool free_nans, Arena *arena)
{
    DType t = g->dtypes[number];
    unsigned width = dtype_bits(t);
    size_t count = g->buffers[number].size * 8 / width;
    for (size_t i = 0; i < count; i++) {
        uint64_t a = bits_get(expected, i, width), b = bits_get(got, i, width);
        if (!same_code(t, a, b, free_nans))
            return arena_printf(arena, "element %zu of buffer %zu, %s, is 0x%llx, not 0x%llx",
                                i, number, dtype_name(t), (unsigned long long)b,
                                (unsigned long long)a);
    }
    for (size_t bit = count * width; bit < g->buffers[number].size * 8; bit++)
        if (bits_get(expected, bit, 1) != bits_get(got, bit, 1))
            return arena_printf(arena, "bit %zu of buffer %zu, behind its elements, changes",
                                bit, number);
    return NULL;
}

const char *outcome_difference(const GenProgram *g, const Outcome *expected,
                               const Outcome *got, bool free_nans, Arena *arena)
{
    if (got->status != expected->status)
        return arena_printf(arena, "the program ends otherwise: status %d, not %d, \"%s\"",
                            got->status, expected->status, got->message);
    if (!same_error(expected->message, got->message))
        return arena_printf(arena, "the error is \"%s\", not \"%s\"", got->message,
                            expected->message);
    if (strcmp(got->printed, expected->printed) != 0)
        return arena_printf(arena, "what is printed differs:\n%s\nnot\n%s", got->printed,
                            expected->printed);
    for (size_t i = 0; i < g->buffer_count; i++) {
        const char *difference = buffer_difference(g, i, expected->buffers[i].data,
                                                   got->buffers[i].data, free_nans, arena);
        if (difference)
            return difference;
    }
    return NULL;
}
