# The target `coverage`: runs all tests of a build with TILUS_COVERAGE and prints which
# lines of the libraries they ran. It fails where test/coverage.py says too few.
if(NOT TILUS_COVERAGE OR NOT TILUS_TESTS)
    return()
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)
string(REGEX MATCH "^[0-9]+" major ${CMAKE_C_COMPILER_VERSION})
find_program(TILUS_GCOV NAMES gcov-${major} gcov REQUIRED)
add_custom_target(coverage
    COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/test/coverage.py --gcov ${TILUS_GCOV}
            --lit ${TILUS_LIT} --jobs 2 ${PROJECT_BINARY_DIR}
    USES_TERMINAL VERBATIM)

# It needs every program.
foreach(directory tools examples test)
    get_property(targets DIRECTORY ${PROJECT_SOURCE_DIR}/${directory}
                 PROPERTY BUILDSYSTEM_TARGETS)
    foreach(target ${targets})
        get_target_property(type ${target} TYPE)
        if(type STREQUAL EXECUTABLE OR type STREQUAL MODULE_LIBRARY)
            add_dependencies(coverage ${target})
        endif()
    endforeach()
endforeach()
