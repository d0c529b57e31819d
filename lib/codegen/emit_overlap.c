/* Launches that overlap (PTX ISA, griddepcontrol).
 *
 *     launch A   ....  launch_dependents  ......  end
 *     launch B                |   ..........        |  wait_dependencies  ....
 *                             may begin             goes on
 *
 * Targets that lack the instructions begin B after the end of A, as if both ops stood
 * there. */
#include "codegen/internal.h"

static bool emit_if_there(Codegen *cg, IntrinsicId id, const Op *op)
{
    return cg->target->sm < intrinsic_info[id].sm || call_intrinsic(cg, id, op->loc, NULL, 0);
}

bool emit_launch_dependents(Codegen *cg, const Op *op)
{
    return emit_if_there(cg, INTR_launch_dependents, op);
}

bool emit_wait_dependencies(Codegen *cg, const Op *op)
{
    return emit_if_there(cg, INTR_wait_dependencies, op);
}
