/* The version of the LLVM library in this process. */
#include "codegen/codegen.h"

#include <llvm-c/Core.h>
#include <stdio.h>
#include <threads.h>

static char version_text[40];

static void write_version(void)
{
    unsigned major, minor, patch;
    LLVMGetVersion(&major, &minor, &patch);
    snprintf(version_text, sizeof version_text, "%u.%u.%u", major, minor, patch);
}

const char *codegen_llvm_version(void)
{
    static once_flag once = ONCE_FLAG_INIT;
    call_once(&once, write_version);
    return version_text;
}
