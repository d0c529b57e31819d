# Writes a C source that holds the bytes of a text: `const char NAME[]`, with a NUL behind
# them, and `const size_t NAME_size` without it. Arguments: TEXT, SOURCE, NAME.
file(READ ${TEXT} digits HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${digits}")
string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n"
       bytes "${bytes}")
get_filename_component(file ${TEXT} NAME)
file(WRITE ${SOURCE} "/* ${file}, by cmake/embed_text.cmake. */
#include <stddef.h>

extern const char ${NAME}[];
extern const size_t ${NAME}_size;

const char ${NAME}[] = {
${bytes}0};
const size_t ${NAME}_size = sizeof ${NAME} - 1;
")
