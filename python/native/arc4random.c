/* Defines arc4random, which glibc has from 2.36 on, for libstdc++ inside of the package's compiler
 * library, so that the package runs on glibc 2.34. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

uint32_t arc4random(void);

uint32_t arc4random(void)
{
    uint32_t number;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        abort();
    return number;
}
