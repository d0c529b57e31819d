/* Public API: passes of callers. */
#include "api/ir_handles.h"
#include "passes/own.h"
#include "passes/plugin.h"

bool tilus_register_pass(const tilus_pass *pass, char *message, size_t message_size)
{
    return own_pass_add(pass, (Report){message, message_size});
}

bool tilus_load_plugin(const char *path, char *message, size_t message_size)
{
    Report why = {message, message_size};
    return path ? plugin_load(path, why) : report_fault(why, "path: NULL");
}

int64_t tilus_pass_option_value(const tilus_module *module, const char *name)
{
    return module && name ? own_option_value(module, name) : 0;
}

static bool count(Module *m, const char *name, uint64_t n)
{
    own_stat_add(m, name, n);
    return true;
}

void tilus_pass_count(tilus_module *module, const char *name, uint64_t n)
{
    bool ok = false;
    if (module && name)
        IR_CALL(module, ok, false, count(module, name, n));
    (void)ok;
}
