/* Passes of one's own, in the process or from a plugin (docs/ir-api.md). Pointers are not NULL
 * unless a comment says that they may be. */
#ifndef TILUS_PASS_H
#define TILUS_PASS_H

#include "tilus/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A pass: one of the two functions, which returns false when it failed, best after
 * tilus_op_error. The library knows by itself whether it changed something, and verifies the
 * module then. Where choices of instructions that are written lose their proof, they are
 * dropped, as after the library's own passes. The function must not call
 * tilus_run_passes or tilus_module_free on the module, nor be left by an exception or longjmp;
 * it may be called by several threads at once, for different modules. */
typedef struct tilus_pass {
    size_t struct_size;         /* sizeof(tilus_pass) */
    const char *name;           /* small letters, digits and dashes: "simplify-abs" */
    const char *summary;        /* one line for --list-passes */
    bool (*run_on_program)(tilus_program *program, void *user);
    bool (*run_on_module)(tilus_module *module, void *user);
    void *user;
    bool takes_open_layouts;    /* it also runs before infer-layouts */
    /* Options that pipelines give, as in `my-pass{width=4 fast}`: at most 16, whose names are of
       small letters, digits and _; `pass` does not count. NULL: none. */
    const tilus_pass_option *options;
    size_t option_count;
} tilus_pass;

/* Adds a pass to those of this process: to tilus_pass_name, and to what pipelines name.
 * Strings are copied. False, with the reason in message[0..message_size), when there is such a
 * name, the struct is wrong, or TILUS_PASSES_MOST are there. Thread safe; not to be called
 * while another thread runs passes that it names. */
#define TILUS_PASSES_MOST 64
TILUS_API bool tilus_register_pass(const tilus_pass *pass, char *message, size_t message_size);

/* Adds to the counter `name` of the pass that runs on the module, which the statistics of
 * tilus_pass_options print when it is not 0. Outside of passes of one's own nothing happens. */
TILUS_API void tilus_pass_count(tilus_module *module, const char *name, uint64_t n);

/* The value of the option `name` of the pass of one's own that runs on the module, which its
 * pipeline gives or which is the option's; 0 outside of such a pass, and without such an
 * option. */
TILUS_API int64_t tilus_pass_option_value(const tilus_module *module, const char *name);

/* ---- plugins ----------------------------------------------------------- */

/* The interface between library and plugins. It changes when a plugin must be built anew. */
#define TILUS_PLUGIN_API 1

typedef struct tilus_plugin {
    size_t struct_size;         /* sizeof(tilus_plugin) */
    unsigned api;               /* TILUS_PLUGIN_API */
    const char *name;           /* "power-of-two" */
    const char *version;        /* "1.0" */
    /* Registers its passes, and loads no other plugin; false, with a reason in the message, when
     * it cannot. */
    bool (*register_passes)(char *message, size_t message_size);
} tilus_plugin;

/* The one symbol of a plugin that the library looks for: its description, in static storage. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const tilus_plugin *tilus_plugin_info(void);

/* Loads the shared library at `path`, which dlopen finds as it does, and registers its passes;
 * it stays loaded. A plugin that is loaded already is left alone. False, with the reason in
 * message[0..message_size), when it cannot be loaded, is no plugin, is of another
 * TILUS_PLUGIN_API, or does not register. Thread safe as tilus_register_pass. */
TILUS_API bool tilus_load_plugin(const char *path, char *message, size_t message_size);

#ifdef __cplusplus
}
#endif

#endif
