/* Limits of the compiler: LIMIT_RANK and so on are those of limits.def. A limit that
 * can be set is asked for by its number, `diag_limit(diag, LIMIT_ID_VALUES)`. */
#ifndef TILUS_SUPPORT_LIMITS_H
#define TILUS_SUPPORT_LIMITS_H

#include <stdint.h>

enum {
#define LIMIT(id, value, name, most, what) LIMIT_##id = value,
#include "support/limits.def"
};

typedef enum LimitId {
#define LIMIT(id, value, name, most, what) LIMIT_ID_##id,
#include "support/limits.def"
    LIMIT_ID_COUNT
} LimitId;

#endif
