"""api_header.py FILE: writes a header with most that scripts/api_reference.py knows."""
import sys
from pathlib import Path

Path(sys.argv[1]).write_text("""/* Kernels of a test. See docs/none.md and docs/runtime.md.
 *
 *     open ─▶ close */
#ifndef TILUS_KERNEL_H
#define TILUS_KERNEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- first part -------------------------------------------------- */

/* Colors. */
typedef enum tilus_color {
    TILUS_RED = 2,      /* as 2 * 1,
                           with a | in it */
    TILUS_BLUE
} tilus_color;

typedef struct tilus_options {
    /* Gets what tilus_name() says. */
    void (*print)(void *printer, const char *text);
    int64_t n, k;               /* on
                                   two lines */
} tilus_options;

/* The names. */
TILUS_API const char *tilus_name(void);     /* static storage */
TILUS_API char *tilus_lost(const tilus_options *options_of_a_name_that_is_long,
                           const tilus_options *others_of_a_name_that_is_long);

TILUS_API int tilus_silent(void);

/* Says something. */
TILUS_API tilus_status tilus_tell(void);
TILUS_API bool tilus_ask(void);
TILUS_API void tilus_name_free(char *name);

#ifdef __cplusplus
}
#endif

#endif
""")
