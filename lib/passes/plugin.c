/* Loading of plugins. */
#include "passes/plugin.h"

#include "passes/own.h"

#include <dlfcn.h>
#include <string.h>
#include <threads.h>

typedef const tilus_plugin *InfoFunction(void);

/* Plugins by the address of their descriptions, so that none registers twice. */
enum { PLUGINS = TILUS_PASSES_MOST };
static const tilus_plugin *loaded[PLUGINS];
static size_t loaded_count;

static bool is_loaded(const tilus_plugin *plugin)
{
    for (size_t i = 0; i < loaded_count; i++)
        if (loaded[i] == plugin)
            return true;
    return false;
}

/* The description in a loaded library; NULL with a report. */
static const tilus_plugin *find_info(void *library, const char *path, Report why)
{
    InfoFunction *info;
    void *symbol = dlsym(library, "tilus_plugin_info");
    memcpy(&info, &symbol, sizeof info);
    const tilus_plugin *plugin = symbol ? info() : NULL;
    if (!symbol)
        report_fault(why, "%s is no plugin: it has no tilus_plugin_info", path);
    else if (!plugin)
        report_fault(why, "%s: tilus_plugin_info gives no description", path);
    return plugin;
}

/* Looks at the interface's number first: with another one nothing else need be as here. */
static bool check_plugin(const tilus_plugin *p, const char *path, Report why)
{
    if (p->api != TILUS_PLUGIN_API)
        return report_fault(why, "%s is built for plugin interface %u, this library, tilus %s, has "
                            "%d: build it anew", path, p->api, tilus_version(), TILUS_PLUGIN_API);
    if (p->struct_size < sizeof *p || !p->name || !p->version || !p->register_passes)
        return report_fault(why, "%s: its description lacks a name, a version or register_passes",
                            path);
    return loaded_count < PLUGINS ||
           report_fault(why, "%s: there are %d plugins already", path, PLUGINS);
}

/* A plugin that brings another copy of the library registers with that one. */
static bool register_passes(const tilus_plugin *p, const char *path, Report why)
{
    size_t before = own_pass_count();
    char reason[256] = "";
    if (!p->register_passes(reason, sizeof reason))
        return report_fault(why, "%s: plugin %s does not register: %s", path, p->name,
                            *reason ? reason : "it gives no reason");
    return own_pass_count() > before ||
           report_fault(why, "%s: plugin %s registers no pass with this library; is it linked "
                        "with another copy?", path, p->name);
}

static bool load(const char *path, Report why)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return report_fault(why, "cannot load plugin: %s", dlerror());
    const tilus_plugin *plugin = find_info(library, path, why);
    if (!plugin)
        return false;
    if (is_loaded(plugin))
        return true;
    if (!check_plugin(plugin, path, why) || !register_passes(plugin, path, why))
        return false;
    loaded[loaded_count++] = plugin;
    return true;
}

static mtx_t load_mutex;
static _Thread_local bool loading;      /* this thread holds it */

static void make_mutex(void) { mtx_init(&load_mutex, mtx_plain); }

bool plugin_load(const char *path, Report why)
{
    static once_flag once = ONCE_FLAG_INIT;
    if (loading)
        return report_fault(why, "%s: a plugin loads no other one while it registers", path);
    call_once(&once, make_mutex);
    mtx_lock(&load_mutex);
    loading = true;
    bool ok = load(path, why);
    loading = false;
    mtx_unlock(&load_mutex);
    return ok;
}
