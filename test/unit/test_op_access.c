/* The rows of ops.def against each other, and the accesses of ops as the rows tell. */
#include "ir/op_access.h"

#include "ir/verify.h"
#include "syntax/syntax.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The effect column, which says how ops may be reordered, agrees with the accesses. */
static void effects_agree_with_accesses(void **state)
{
    (void)state;
    for (OpCode code = 0; code < OP_COUNT; code++) {
        const OpInfo *info = &op_info[code];
        bool writes = false;
        for (unsigned i = 0; i < info->memory.count; i++)
            writes |= info->memory.accesses[i].mode != MODE_READ;
        bool syncs = info->sync.kind != SYNC_NONE;
        if (writes)
            assert_true(info->effect == EFFECT_WRITES || info->effect == EFFECT_BARRIER);
        if (info->effect == EFFECT_READS)
            assert_true(info->memory.count > 0 && !writes && !syncs);
        if (info->effect == EFFECT_PURE)
            assert_true(info->memory.count == 0 && !syncs);
        if (info->effect == EFFECT_BARRIER)
            assert_true(syncs);
    }
}

static bool is_memory_kind(OperandKind kind)
{
    return kind == OPERAND_SHARED || kind == OPERAND_GLOBAL || kind == OPERAND_MEMORY;
}

/* Operands of ops that are not pure may be registers or memory: dot_async's a. */
static bool may_be_memory(const OpInfo *info, unsigned operand)
{
    OperandKind kind = info->operands[operand];
    return is_memory_kind(kind) || (kind == OPERAND_TENSOR && info->effect != EFFECT_PURE);
}

static void check_row(OpCode code, const AccessRow *row)
{
    const OpInfo *info = &op_info[code];
    if (info->operand_count != OPERANDS_ANY)
        assert_true(may_be_memory(info, row->operand));
    if (row->place == ACCESS_AT_OFFSETS)
        assert_true(info->attrs & op_attr_bit(ATTR_OFFSETS));
    if (row->place == ACCESS_AT_SOURCE)
        assert_true(info->attrs & op_attr_bit(ATTR_SOURCE_OFFSETS));
}

static void accesses_are_of_memory_operands(void **state)
{
    (void)state;
    for (OpCode code = 0; code < OP_COUNT; code++) {
        const MemoryRow *memory = &op_info[code].memory;
        assert_in_range(memory->count, 0, ACCESSES_MAX);
        for (unsigned i = 0; i < memory->count; i++)
            check_row(code, &memory->accesses[i]);
        if (memory->completion == COMPLETION_MBARRIER)
            assert_int_equal(op_info[code].operands[memory->counter], OPERAND_MBARRIER);
        if (memory->completion != COMPLETION_NOW)
            assert_non_null(completion_wait_name(memory->completion));
    }
}

/* Each memory operand of an op that is not pure is accessed, except for the states of barriers and
 * paces of the grid, which are no other op's. */
static void no_memory_operand_is_forgotten(void **state)
{
    (void)state;
    for (OpCode code = 0; code < OP_COUNT; code++) {
        const OpInfo *info = &op_info[code];
        int memory = 0;
        for (int i = 0; i < info->operand_count && i < OPERANDS_MAX; i++)
            memory += may_be_memory(info, (unsigned)i);
        bool has_state = info->sync.kind == SYNC_GRID || code == OP_grid_pace;
        if (info->operand_count != OPERANDS_ANY && !has_state)
            assert_int_equal(info->memory.count, memory);
    }
}

static void waits_have_names(void **state)
{
    (void)state;
    assert_string_equal(completion_wait_name(COMPLETION_GROUP), "copy_async_wait_group");
    assert_string_equal(completion_wait_name(COMPLETION_MBARRIER), "mbarrier_wait");
}

/* A text's only program. */
typedef struct Subject {
    Diag diag;
    Module *module;
    Program *program;
} Subject;

static void subject_open(Subject *s, const char *text)
{
    diag_init(&s->diag);
    diag_set_source(&s->diag, "test", text, strlen(text), 1);
    s->module = module_new(&s->diag);
    assert_non_null(s->module);
    assert_true(parse_module(s->module, NULL, 0) && verify_module(s->module));
    s->program = s->module->programs;
}

static void subject_free(Subject *s)
{
    module_free(s->module);
    diag_free(&s->diag);
}

static Value *find_value(Program *p, const char *name)
{
    for (Op *op = p->body->first; op; op = op->next)
        for (unsigned i = 0; i < op->result_count; i++)
            if (op->results[i]->name && !strcmp(op->results[i]->name, name))
                return op->results[i];
    return NULL;
}

static void accesses_of_a_bulk_copy(void **state)
{
    (void)state;
    static const char text[] =
        "program @p<1>(%x: ptr<u32> {align = 16}) warps(1) {\n"
        "  %g = view_global %x : u32[4, 64]\n"
        "  %s = allocate_shared : u32[2, 64]\n"
        "  %b = allocate_mbarrier {count = 1} : mbarrier[3]\n"
        "  copy_async_bulk %g[3, 0], %s[1, 0], %b[2] {shape = [64]}\n"
        "}\n";
    Subject s;
    subject_open(&s, text);
    OpAccess a[ACCESSES_MAX], written;
    const Op *copy = s.program->body->last;
    assert_int_equal(op_accesses(copy, a), 2);
    assert_int_equal(a[0].operand, 0);
    assert_int_equal(a[0].mode, MODE_READ);
    assert_ptr_equal(a[0].tile.memory, find_value(s.program, "g"));
    assert_ptr_equal(a[0].tile.offsets, op_attr(copy, ATTR_SOURCE_OFFSETS));
    assert_int_equal(a[1].operand, 1);
    assert_int_equal(a[1].mode, MODE_WRITE);
    assert_int_equal(a[1].threads, ACCESS_BY_ANY);
    assert_int_equal(a[1].completion, COMPLETION_MBARRIER);
    assert_ptr_equal(a[1].counter, find_value(s.program, "b"));
    assert_ptr_equal(a[1].tile.offsets, op_attr(copy, ATTR_OFFSETS));
    assert_int_equal(a[1].tile.extents[0], 64);
    assert_true(op_access_written(copy, &written));
    assert_int_equal(written.operand, 1);
    assert_true(op_is_async(copy));
    subject_free(&s);
}

/* A copy of rows that a register tensor names may read all of the view, but writes its tile;
 * the op's own tiles know which dimension is indexed. */
static void accesses_of_copied_rows(void **state)
{
    (void)state;
    static const char text[] =
        "program @p<1>(%x: ptr<u32> {align = 16}, %i: ptr<i32>, %n: i32) warps(1) {\n"
        "  %g = view_global %x : u32[%n, 64]\n"
        "  %gi = view_global %i : i32[32, 1]\n"
        "  %s = allocate_shared : u32[32, 64]\n"
        "  %rows = load_global %gi[0, 0] : i32[32, 1] @ spatial(32, 1)\n"
        "  copy_async %g[%rows, 8], %s[0, 0] {shape = [32, 16]}\n"
        "  %v = load_shared %s[%rows, 8] : u32[32, 2] @ spatial(32, 1).local(1, 2)\n"
        "}\n";
    Subject s;
    subject_open(&s, text);
    OpAccess a[ACCESSES_MAX];
    const Op *load = s.program->body->last, *copy = load->prev;
    assert_int_equal(op_accesses(copy, a), 2);
    assert_true(a[0].data_dependent);
    assert_null(a[0].tile.offsets);
    assert_true(a[0].tile.extents[0] > INT32_MAX);
    assert_int_equal(a[0].tile.extents[1], 64);
    assert_false(a[1].data_dependent);
    assert_int_equal(a[1].tile.extents[1], 16);
    assert_null(a[1].tile.index);
    MemoryTile source = op_source_tile(copy);
    assert_ptr_equal(source.index, find_value(s.program, "rows"));
    assert_int_equal(memory_tile_find(&source, 0), -1);
    assert_int_equal(memory_tile_find(&source, 1), 1);
    assert_true(memory_tile_is_uniform(&source, 1) && !memory_tile_is_uniform(&source, 0));
    assert_int_equal(op_accesses(load, a), 1);
    assert_true(a[0].data_dependent);
    assert_int_equal(a[0].tile.extents[0], 32);
    assert_ptr_equal(op_index(load), source.index);
    subject_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(effects_agree_with_accesses),
        cmocka_unit_test(accesses_are_of_memory_operands),
        cmocka_unit_test(no_memory_operand_is_forgotten),
        cmocka_unit_test(waits_have_names),
        cmocka_unit_test(accesses_of_a_bulk_copy),
        cmocka_unit_test(accesses_of_copied_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
