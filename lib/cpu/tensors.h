/* Which bytes of shared memory each op may access (--check-races): what an access past the
 * end of a shared tensor touches is its neighbor, where no guard page finds it. */
#ifndef TILUS_CPU_TENSORS_H
#define TILUS_CPU_TENSORS_H

#include "cpu/machine.h"

/* Sets the machine's ranges, on the module's scratch arena. The program is compiled. */
void tensors_open(Machine *m);

/* Reports an access of bytes [begin, begin + size) of shared memory by thread `thread`, in the
 * op at `place`, when they are in no range of ops there. Does not return then. */
void tensors_check(Worker *w, Place place, uint32_t thread, int64_t begin, size_t size);

#endif
