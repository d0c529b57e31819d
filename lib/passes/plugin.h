/* Plugins: shared libraries that register passes. */
#ifndef TILUS_PASSES_PLUGIN_H
#define TILUS_PASSES_PLUGIN_H

#include "support/report.h"

/* Loads the plugin at `path`; false with a report. */
bool plugin_load(const char *path, Report why);

#endif
