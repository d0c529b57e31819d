# Writes the params of the section PACKED FORM of TEXT, a program's, as constants in C, which
# lib/matmul/packed_form.c includes: `param CODES = ROWS * bits(W) * 4` becomes
# `const int64_t CODES = ROWS * bits(W) * 4;`. Arguments: TEXT, SOURCE.
cmake_minimum_required(VERSION 3.22)
file(STRINGS ${TEXT} lines)
set(constants "/* The packed form, by cmake/packed_form.cmake. */\n")
set(inside FALSE)
foreach(line IN LISTS lines)
    if(line MATCHES "^// PACKED FORM:")
        set(inside TRUE)
    elseif(line MATCHES "^// END OF PACKED FORM")
        set(inside FALSE)
    elseif(inside AND line MATCHES "^param ([A-Z_]+) = ([^/]*[^/ ]( / [^/]*[^/ ])*)( *//.*)?$")
        string(APPEND constants "const int64_t ${CMAKE_MATCH_1} = ${CMAKE_MATCH_2};\n")
    elseif(inside AND line MATCHES "^param")
        message(FATAL_ERROR "${TEXT}: not a constant on a line of its own: ${line}")
    endif()
endforeach()
file(WRITE ${SOURCE} "${constants}")
