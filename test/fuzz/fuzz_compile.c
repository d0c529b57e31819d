/* Programs that are nearly right: what the verifier accepts is compiled to PTX, or
 * refused with an error. Neither a pass, nor code generation, nor LLVM may crash. */
#include "edits.h"
#include "outcome.h"
#include "target.h"

#include "ir/ir.h"

#include <stdlib.h>
#include <string.h>

/* Returns true when the registers of all ops together are few enough to compile soon. */
static bool is_small(const Region *r, int64_t *slots)
{
    enum { SLOTS = 6000 };
    for (const Op *op = r->first; op && *slots < SLOTS; op = op->next) {
        for (unsigned i = 0; i < op->result_count; i++)
            if (op->results[i]->type->kind == TYPE_REG)
                *slots += op->results[i]->type->layout->slots;
        if (op->code == OP_for && op_attr(op, ATTR_UNROLL))
            *slots += SLOTS / 8;
        for (unsigned i = 0; i < op->region_count; i++)
            is_small(op->regions[i], slots);
    }
    return *slots < SLOTS;
}

static bool module_is_small(const Module *m)
{
    int64_t slots = 0;
    bool small = true;
    for (const Program *p = m->programs; p; p = p->next)
        small &= is_small(p->body, &slots);
    return small;
}

static void compile(const Parsed *p, const char *target, unsigned level, const char *text)
{
    tilus_pass_options passes = {.struct_size = sizeof passes,
                                 .verify_each = true, .target = target};
    tilus_compile_options options = {.struct_size = sizeof options,
                                     .cpu = target, .opt_level = level};
    char *ptx = NULL;
    if (tilus_run_passes(p->module, tilus_default_pipeline(), &passes) &&
        module_is_small(p->module))
        ptx = tilus_compile(p->module, &options, NULL);
    else if (tilus_diag_errors(p->diag) == 0)
        return;
    if (!ptx && tilus_diag_errors(p->diag) == 0)
        target_fail("refused without an error:\n%s", text);
    free(ptx);
}

static void check_program(Choices *choices, Arena *arena)
{
    static const char *const targets[] = {"sm_80", "sm_89", "sm_90", "sm_90a"};
    unsigned edits = (unsigned)choose_between(choices, 1, 5);
    const char *target = targets[choose(choices, 4)];
    unsigned level = (unsigned)choose(choices, 4);
    GenProgram g = program_generate(choices, &(GenOptions){0}, arena);
    const char *text = text_edit(g.text, edits, choices, arena);
    Parsed p = parsed_new(text, strlen(text));
    if (p.module)
        compile(&p, target, level, text);
    parsed_release(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return target_run(check_program, data, size);
}
