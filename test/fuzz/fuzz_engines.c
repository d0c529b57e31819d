/* Programs on the interpreter and, compiled at -O0 and -O3, on the CPU engine:
 * program_check.h. */
#include "program_check.h"
#include "target.h"

static void check_program(Choices *choices, Arena *arena)
{
    static const char *const targets[] = {"sm_80", "sm_89", "sm_90", "sm_90a"};
    static CheckTotals totals;
    uint64_t target = choose(choices, 4);
    CheckOptions options = {.target = targets[target], .cpu = true,
                            .gen = {.exact = true, .bulk = target >= 2, .wgmma = target == 3}};
    if (!program_check(&options, &totals, choices, arena, "fuzz_engines"))
        target_fail("the engines do not agree");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return target_run(check_program, data, size);
}
