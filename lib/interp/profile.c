/* Counters of each line of the text: ops that blocks executed, and elements that their
 * threads moved. Counted only when somebody wants to know. */
#include "interp/state.h"

static bool find_last_line(Op *op, void *data)
{
    uint32_t *last = data;
    *last = op->loc.line > *last ? op->loc.line : *last;
    return true;
}

void profile_open(Interp *in)
{
    uint32_t last = 0;
    if (!in->options || !in->options->profile)
        return;
    region_walk(in->program->body, find_last_line, &last);
    in->line_count = (size_t)last + 1;
    in->lines = arena_array(in->arena, tilus_line_profile, in->line_count);
}

void profile_op(Interp *in, const Op *op)
{
    if (in->lines)
        in->lines[op->loc.line].ops++;
}

void profile_moved(Interp *in, const Op *op, const View *view, bool write, int64_t elements)
{
    if (!in->lines)
        return;
    tilus_line_profile *line = &in->lines[op->loc.line];
    uint64_t bits = (uint64_t)elements * view->bits;
    if (view->memory->shared)
        *(write ? &line->shared_written : &line->shared_read) += bits;
    else
        *(write ? &line->global_written : &line->global_read) += bits;
}

/* Packs the lines that did something to the front, and hands them over. */
void profile_report(Interp *in)
{
    size_t count = 0;
    if (!in->lines)
        return;
    for (size_t i = 0; i < in->line_count; i++)
        if (in->lines[i].ops > 0) {
            in->lines[count] = in->lines[i];
            in->lines[count++].line = (unsigned)i;
        }
    in->options->profile(in->options->profiler, in->lines, count);
}
