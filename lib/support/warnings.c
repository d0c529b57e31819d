/* Flags of groups of warnings. */
#include "support/warnings.h"

#include <string.h>

const WarningInfo warning_info[WARNING_COUNT] = {
#define WARNING(id, name, on, what) [WARNING_##id] = {name, what, on},
#include "support/warnings.def"
};

enum { ALL = (1 << WARNING_COUNT) - 1 };

WarningSet warning_defaults(void)
{
    WarningSet set = {0};
    for (WarningId id = 0; id < WARNING_COUNT; id++)
        set.on |= (uint32_t)warning_info[id].on << id;
    return set;
}

/* Moves `*text` past `prefix`, if it begins with that. */
static bool skip_prefix(const char **text, const char *prefix)
{
    size_t len = strlen(prefix);
    if (strncmp(*text, prefix, len) != 0)
        return false;
    *text += len;
    return true;
}

/* The bits of the group called `name`, or of all; 0 when there is none. */
static uint32_t find_groups(const char *name)
{
    if (!strcmp(name, "all"))
        return ALL;
    for (WarningId id = 0; id < WARNING_COUNT; id++)
        if (!strcmp(warning_info[id].name, name))
            return UINT32_C(1) << id;
    return 0;
}

bool warning_set_apply(WarningSet *set, const char *flag)
{
    bool no = skip_prefix(&flag, "no-");
    bool bare = !strcmp(flag, "error"), fatal = bare || skip_prefix(&flag, "error=");
    uint32_t groups = bare ? ALL : find_groups(flag);
    if (fatal)
        set->fatal = no ? set->fatal & ~groups : set->fatal | groups;
    if (!bare && !(fatal && no))
        set->on = no ? set->on & ~groups : set->on | groups;
    return groups != 0;
}
