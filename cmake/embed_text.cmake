# Writes a C source that holds the bytes of a text: `const char NAME[]`, with a NUL behind
# them, and `const size_t NAME_size` without it. The items of a file that it imports stand in
# place of the first import of it. Arguments: TEXT, SOURCE, NAME.

cmake_minimum_required(VERSION 3.22)

# Sets `out` to the text of a file, imports replaced; `imported` grows by the file.
function(read_text path out)
    file(READ ${path} text)
    get_filename_component(folder ${path} DIRECTORY)
    string(REGEX MATCHALL "\nimport \"[^\"]+\"" imports "${text}")
    foreach(import IN LISTS imports)
        string(REGEX REPLACE "\nimport \"([^\"]+)\"" "${folder}/\\1" file "${import}")
        set(items "")
        if(NOT file IN_LIST imported)
            list(APPEND imported ${file})
            read_text(${file} items)
            string(REGEX REPLACE "^tilus [0-9]+\n" "" items "${items}")
        endif()
        string(REPLACE "${import}" "\n${items}" text "${text}")
    endforeach()
    set(imported ${imported} PARENT_SCOPE)
    set(${out} "${text}" PARENT_SCOPE)
endfunction()

set(imported "")
read_text(${TEXT} text)
file(WRITE ${SOURCE}.text "${text}")
file(READ ${SOURCE}.text digits HEX)
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
