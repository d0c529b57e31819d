/* Visibility of public functions; version macros. */
#ifndef TILUS_EXPORT_H
#define TILUS_EXPORT_H

#include "tilus/version.h"

#if defined(__GNUC__)
#define TILUS_API __attribute__((visibility("default")))
#else
#define TILUS_API
#endif

#endif
