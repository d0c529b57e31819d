/* Versions and the git revision, which a user quotes in a bug report. */
#include "codegen/codegen.h"
#include "tilus/tilus.h"
#include "tilus_revision.h"

const char *tilus_version(void)
{
    return TILUS_VERSION_STRING;
}

const char *tilus_llvm_version(void)
{
    return codegen_llvm_version();
}

const char *tilus_git_revision(void)
{
    return TILUS_GIT_REVISION;
}
