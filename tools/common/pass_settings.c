/* The files that options of passes name. */
#include "common/pass_settings.h"

#include "common/file.h"

bool pass_settings_open(PassSettings *s, const char *tool)
{
    if (!s->remarks)
        return true;
    s->remarks_file = file_open(tool, s->remarks);
    s->options.remarks = file_take;
    s->options.remarks_data = s->remarks_file;
    return s->remarks_file != NULL;
}

bool pass_settings_close(PassSettings *s, const char *tool)
{
    return file_close(tool, s->remarks, s->remarks_file);
}
