/* Programs on the interpreter, as they are and after every pass: program_check.h. */
#include "program_check.h"
#include "target.h"

static void check_program(Choices *choices, Arena *arena)
{
    static CheckTotals totals;
    CheckOptions options = {.gen.races = choose_rarely(choices, 8)};
    options.gen.bulk = options.gen.wgmma = true;
    options.gen.failures = choose_rarely(choices, 8);
    if (!program_check(&options, &totals, choices, arena, "fuzz_passes"))
        target_fail("the program does not agree with itself");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return target_run(check_program, data, size);
}
