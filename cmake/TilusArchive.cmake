# Libraries define global symbols only for what TILUS_API marks, so that names inside can
# stay short and meet no name of a user. Of static libraries the objects are linked into
# one (`ld -r`), whose other symbols become local; shared ones have a version script,
# cmake/exports/NAME.map.
# GNU ld is preferred: `-r` of mold 1.10 forgets that a symbol is hidden.
if(NOT CMAKE_CROSSCOMPILING)
    find_program(TILUS_RELOCATABLE_LINKER NAMES ld.bfd HINTS ENV PATH)
endif()
if(NOT TILUS_RELOCATABLE_LINKER)
    set(TILUS_RELOCATABLE_LINKER ${CMAKE_LINKER})
endif()

# With TILUS_ARCHIVES static libraries are built beside the shared ones, for tests.
if(TILUS_TESTS AND NOT TILUS_STATIC_LLVM AND NOT TILUS_LLVM_INSIDE AND NOT TILUS_SANITIZE AND
   NOT TILUS_COVERAGE)
    set(TILUS_ARCHIVES ON)
endif()

function(prelink_objects name out)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.o)
    add_custom_command(OUTPUT ${object}
        COMMAND ${TILUS_RELOCATABLE_LINKER} -r -o ${object} ${ARGN}
        COMMAND ${CMAKE_OBJCOPY} --localize-hidden --wildcard --keep-global-symbol=tilus_*
                ${object}
        DEPENDS ${ARGN} COMMENT "Linking ${name}.o" COMMAND_EXPAND_LISTS VERBATIM)
    set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
    set(${out} ${object} PARENT_SCOPE)
endfunction()

# Adds the static library `target`, libNAME.a, of objects, and of those members of archives that
# they need.
function(add_archive target name)
    prelink_objects(${name} object ${ARGN})
    add_library(${target} STATIC ${object})
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C OUTPUT_NAME ${name})
endfunction()
