/* Texts as JSON. Names that begin with json_ are jansson's, with which tools and tests link. */
#ifndef TILUS_SUPPORT_JSON_H
#define TILUS_SUPPORT_JSON_H

#include "support/writer.h"

/* Writes `text` as a JSON string, in quotes. Characters of UTF-8 stay; each byte that is of none
 * becomes \ufffd. */
void write_json_string(const Writer *out, const char *text);

/* Writes `name` as the key of a member, "name": and a comma before it unless it is the first. */
void write_json_key(const Writer *out, const char *name, bool first);

#endif
