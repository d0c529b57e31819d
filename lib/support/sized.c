/* Structs of callers of other versions. */
#include "support/sized.h"

#include <string.h>

/* Tells a size from what stands in memory that nobody has set. */
enum { STRUCT_MOST = 4096 };

static size_t given_size(const void *object)
{
    size_t size;
    memcpy(&size, object, sizeof size);
    return size;
}

static bool check_size(size_t given, size_t size, const char *object, const char *name, Report why)
{
    return (given >= sizeof(size_t) && given <= STRUCT_MOST && given % sizeof(size_t) == 0) ||
           report_fault(why, "%s: struct_size is %zu, not sizeof(%s), %zu", object, given, name,
                        size);
}

static bool is_zero(const unsigned char *bytes, size_t count)
{
    while (count > 0 && bytes[count - 1] == 0)
        count--;
    return count == 0;
}

bool sized_copy(void *to, size_t size, const void *from, const char *object, const char *name,
                Report why)
{
    memset(to, 0, size);
    if (from) {
        size_t given = given_size(from), known = given < size ? given : size;
        if (!check_size(given, size, object, name, why))
            return false;
        if (!is_zero((const unsigned char *)from + known, given - known))
            return report_fault(why, "%s: fields past byte %zu of %s are of a newer version of "
                                "this library", object, size, name);
        memcpy(to, from, known);
    }
    memcpy(to, &size, sizeof size);
    return true;
}

bool sized_fill(void *to, const void *from, size_t size, const char *object, const char *name,
                Report why)
{
    size_t given = given_size(to), known = given < size ? given : size;
    if (!check_size(given, size, object, name, why))
        return false;
    memset(to, 0, given);
    memcpy(to, from, known);
    memcpy(to, &given, sizeof given);
    return true;
}
