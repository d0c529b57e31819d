/* Options and results of callers of other versions. */
#include "api/sizes.h"

enum { MESSAGE_SIZE = 256 };

bool api_copy(Diag *diag, void *to, size_t size, const void *from, const char *object,
              const char *name)
{
    char message[MESSAGE_SIZE];
    return sized_copy(to, size, from, object, name, (Report){message, sizeof message}) ||
           diag_error(diag, (Loc){0}, "%s", message);
}

bool api_clear(Diag *diag, void *to, size_t size, const char *object, const char *name)
{
    static const char zeros[512];
    char message[MESSAGE_SIZE];
    return !to || sized_fill(to, zeros, size, object, name, (Report){message, sizeof message}) ||
           diag_error(diag, (Loc){0}, "%s", message);
}

void api_fill(void *to, const void *from, size_t size)
{
    if (to)
        sized_fill(to, from, size, "", "", (Report){NULL, 0});
}
