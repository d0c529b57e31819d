/* Templates of kernels: templates.def as a function. */
#ifndef TILUS_SUPPORT_TEMPLATES_H
#define TILUS_SUPPORT_TEMPLATES_H

/* Returns the name of the template with a program that the library ("attention") asks for, static
 * storage. Of a program that is in none, any of the library's: compiling then says so. */
const char *template_of(const char *library, const char *program);

#endif
