/* Public API: modules, passes, the op reference. Each entry that allocates
 * sets the guard to which arenas jump when memory runs out. */
#define _GNU_SOURCE
#include "api/defines.h"
#include "api/ir_handles.h"
#include "api/sizes.h"
#include "codegen/codegen.h"
#include "ir/verify.h"
#include "passes/own.h"
#include "passes/pass_text.h"
#include "syntax/syntax.h"
#include "tilus/tilus.h"

#include <stdlib.h>
#include <string.h>

static bool parse_and_verify(Module *m, const char *file, const char *text, size_t len,
                             unsigned first_line, const tilus_define *defines, size_t count)
{
    diag_set_source(m->diag, file, text, len, first_line);
    return parse_module(m, api_defines(m, defines, count), count) && verify_module(m);
}

tilus_module *tilus_parse(tilus_diag *diag, const char *file, const char *text, size_t len,
                          unsigned first_line, const tilus_define *defines, size_t define_count)
{
    Module *m = module_new(diag);
    if (!m)
        return NULL;
    if (setjmp(diag->oom.jump)) {
        module_free(m);
        return NULL;
    }
    if (parse_and_verify(m, file, text, len, first_line, defines, define_count))
        return m;
    module_free(m);
    return NULL;
}

void tilus_module_free(tilus_module *module) { module_free(module); }

char *tilus_print(tilus_module *module)
{
    ArenaMark mark = arena_mark(&module->arena);
    if (setjmp(module->diag->oom.jump)) {
        ir_abandon(module);
        arena_reset(&module->arena, mark);
        return NULL;
    }
    Text text;
    text_init(&text, &module->arena);
    print_module(&text, module);
    char *copy = strdup(text_string(&text));
    arena_reset(&module->arena, mark);
    return copy;
}

size_t tilus_program_count(const tilus_module *module)
{
    size_t count = 0;
    for (const Program *p = module->programs; p; p = p->next)
        count++;
    return count;
}

const char *tilus_program_name(const tilus_module *module, size_t i)
{
    const Program *p = module->programs;
    while (p && i--)
        p = p->next;
    return p ? p->name : NULL;
}

/* Gives the module what passes ask it for, runs them, and takes it back. */
static bool run_passes(Module *m, const char *pipeline, const tilus_pass_options *options)
{
    Remarks remarks = {
        .wanted = {[TILUS_REMARK_PASSED] = options->remarks_passed,
                   [TILUS_REMARK_MISSED] = options->remarks_missed},
        .out = {options->write, options->write_data},
        .file = {options->remarks, options->remarks_data},
        .format = options->remarks_format,
        .take = options->remark, .taker = options->remark_data};
    if (!remarks_check(&remarks, m->diag))
        return false;
    m->target_sm = options->target ? codegen_target_sm(m, options->target) : 0;
    if (options->target && !m->target_sm)
        return false;
    m->remarks = &remarks;
    bool ok = pass_run_pipeline(m, pipeline ? pipeline : PASS_DEFAULT_PIPELINE, options);
    m->remarks = NULL;
    return ok;
}

bool tilus_run_passes(tilus_module *module, const char *pipeline,
                      const tilus_pass_options *options)
{
    static const tilus_pass_options defaults = {.struct_size = sizeof defaults,
                                                .verify_each = true};
    tilus_pass_options known;
    if (module->own_pass)
        return diag_error(module->diag, (Loc){0}, "a pass runs no passes on its own module");
    if (setjmp(module->diag->oom.jump)) {
        ir_abandon(module);
        module->remarks = NULL;
        module->pass_options = NULL;
        return false;
    }
    return API_COPY(module->diag, tilus_pass_options, &known, options ? options : &defaults,
                    "options") &&
           run_passes(module, pipeline, &known);
}

bool tilus_remark_at(size_t i, tilus_remark_info *info)
{
    if (i >= REMARK_COUNT)
        return false;
    const RemarkInfo *row = &remark_info[i];
    const tilus_remark_info all = {sizeof all, row->kind, row->pass, row->name, row->text,
                                   row->meaning, row->cure};
    return SIZED_FILL(tilus_remark_info, info, &all, "info", ((Report){NULL, 0}));
}

bool tilus_check_passes(const char *pipeline, char *message, size_t size)
{
    return pass_check_text(pipeline, (Report){message, size});
}

bool tilus_pass_option_at(size_t i, tilus_pass_option *option)
{
    const PassOptionInfo *row = i < PASS_OPTION_COUNT ? &pass_option_info[i] : NULL;
    const char *pass = row ? pass_info[row->pass].name : NULL;
    if (!row)
        row = own_option_at(i - PASS_OPTION_COUNT, &pass);
    if (!row)
        return false;
    const tilus_pass_option all = {sizeof all, pass, row->name, row->summary,
                                   row->least, row->most, row->value};
    return SIZED_FILL(tilus_pass_option, option, &all, "option", ((Report){NULL, 0}));
}

const char *tilus_pass_name(size_t i)
{
    const PassInfo *pass = pass_listed(i);
    return pass ? pass->name : NULL;
}

const char *tilus_pass_summary(size_t i)
{
    const PassInfo *pass = pass_listed(i);
    return pass ? pass->summary : NULL;
}

/* ---- the op reference ---------------------------------------------------- */

static void print_operand_kinds(Text *out, const OpInfo *info)
{
    static const char *const names[] = {"register", "shared", "global", "pointer", "memory",
                                        "tensor", "mbarrier"};
    if (info->operand_count == OPERANDS_ANY)
        text_add(out, info->operand_least ? "registers" : "any");
    for (int i = 0; i < info->operand_count; i++)
        text_printf(out, "%s%s%s", i ? ", " : "", names[info->operands[i]],
                    i < info->operand_least ? "" : " or none");
}

/* Names as they are written in braces, and in capitals what has a place of its own in the text. */
static void print_attr_names(Text *out, const OpInfo *info)
{
    static const char *const names[] = {
#define ATTR(id, spelling, value) #id,
#include "ir/attrs.def"
    };
    bool any = false, braces = info->effect != EFFECT_CONTROL;
    for (AttrKind kind = 0; kind < ATTR_COUNT; kind++)
        if (info->attrs & op_attr_bit(kind)) {
            text_printf(out, "%s%s", any ? ", " : "",
                        braces && attr_in_dictionary(kind) ? attr_info[kind].spelling : names[kind]);
            any = true;
        }
}

static void print_reference(Text *out)
{
    static const char *const results[] = {
        [RESULT_NONE] = "", [RESULT_REG] = "register", [RESULT_SHARED] = "shared",
        [RESULT_GLOBAL] = "global", [RESULT_SCALAR] = "scalar", [RESULT_INDICES] = "indices",
        [RESULT_CARRIED] = "carried", [RESULT_OPTIONAL] = "register or none",
        [RESULT_TENSOR] = "as operand", [RESULT_MBARRIER] = "mbarrier",
        [RESULT_EACH] = "register for each operand"};
    static const char *const effects[] = {"pure", "allocates", "reads", "writes", "barrier",
                                          "exits", "control"};
    text_add(out, "| op | result | operands | attributes | effect | meaning |\n"
                  "|---|---|---|---|---|---|\n");
    for (OpCode code = 0; code < OP_COUNT; code++) {
        const OpInfo *info = &op_info[code];
        text_printf(out, "| `%s` | %s | ", info->name, results[info->result]);
        print_operand_kinds(out, info);
        text_add(out, " | ");
        print_attr_names(out, info);
        text_printf(out, " | %s | %s |\n", effects[info->effect], info->summary);
    }
}

char *tilus_op_reference(void)
{
    OutOfMemory oom;
    Arena arena;
    arena_init(&arena, &oom);
    char *copy = NULL;
    if (setjmp(oom.jump) == 0) {
        Text text;
        text_init(&text, &arena);
        print_reference(&text);
        copy = strdup(text_string(&text));
    }
    arena_free(&arena);
    return copy;
}
