/* Canonicalization: iterates fold, cse and dce, which feed each other, until
 * none changes anything. Each shrinks the program or its expressions, so the
 * iteration ends. */
#include "passes/report.h"

PassResult pass_canonicalize(Program *p)
{
    PassResult result = PASS_UNCHANGED;
    for (bool changed = true; changed;) {
        changed = pass_fold(p) == PASS_CHANGED;
        changed |= pass_cse(p) == PASS_CHANGED;
        changed |= pass_dce(p) == PASS_CHANGED;
        result = changed ? PASS_CHANGED : result;
        stat_add(p->module, STAT_canonicalize_iterations, 1);
    }
    return result;
}
