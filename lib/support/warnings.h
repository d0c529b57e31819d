/* Groups of warnings: WARNING_PIPELINE and so on are the rows of warnings.def. */
#ifndef TILUS_SUPPORT_WARNINGS_H
#define TILUS_SUPPORT_WARNINGS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum WarningId {
#define WARNING(id, name, on, what) WARNING_##id,
#include "support/warnings.def"
    WARNING_COUNT           /* of a message: no group */
} WarningId;

typedef struct WarningInfo {
    const char *name, *what;
    bool on;                /* by default */
} WarningInfo;

extern const WarningInfo warning_info[WARNING_COUNT];

/* The groups that are on, and those whose warnings are errors; bit WARNING_<id> of each. */
typedef struct WarningSet {
    uint32_t on, fatal;
} WarningSet;

/* The set without any flag. */
WarningSet warning_defaults(void);

/* Applies a flag without its -W: "pipeline", "no-pipeline", "error", "error=pipeline",
 * "no-error=pipeline", "all". Later flags prevail. False, and nothing has happened, for a
 * group that does not exist. */
bool warning_set_apply(WarningSet *set, const char *flag);

#endif
