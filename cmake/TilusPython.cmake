# The libraries and programs inside of the Python package (python/), as a component of their own:
#
#   cmake --build build/release --target python_libraries
#   cmake --install build/release --component python --prefix DIR --strip
#
# They are those of the build, but that the compiler library has LLVM inside; objects are compiled
# once for both.
if(NOT TILUS_LIBRARY_TYPE STREQUAL SHARED OR TILUS_SANITIZE OR TILUS_COVERAGE OR CMAKE_CROSSCOMPILING)
    return()
endif()

set(compiler tilus_compiler)
if(NOT TILUS_LLVM_INSIDE)
    find_llvm_archives(llvm_archives)
    if(NOT llvm_archives)
        return()
    endif()
    set(compiler tilus_compiler_inside)
    set(exports ${PROJECT_SOURCE_DIR}/cmake/exports/tilus_compiler.map)
    add_library(${compiler} SHARED EXCLUDE_FROM_ALL $<TARGET_OBJECTS:basic_objects>
        $<TARGET_OBJECTS:type_objects> $<TARGET_OBJECTS:compiler_objects>
        python/native/arc4random.c)
    # Behind all of LLVM, whose every library leads there.
    set_property(TARGET LLVMDemangle APPEND PROPERTY INTERFACE_LINK_LIBRARIES -l:libstdc++.a)
    target_link_libraries(${compiler} PRIVATE tilus_rt ${llvm_archives} ${CMAKE_DL_LIBS} m)
    target_link_options(${compiler} PRIVATE -Wl,--version-script=${exports}
        -Wl,--gc-sections -Wl,--as-needed)
    set_target_properties(${compiler} PROPERTIES OUTPUT_NAME tilus_compiler INSTALL_RPATH "$ORIGIN"
        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/python
        VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
endif()

# The module tilusc._call, where Python's headers are; without it the package calls by ctypes.
set(call)
find_package(Python3 3.9 QUIET COMPONENTS Interpreter Development.Module)
if(Python3_Development.Module_FOUND)
    set(call tilus_python_call)
    add_library(${call} MODULE python/native/call.c python/native/tensor.c)
    target_include_directories(${call} PRIVATE include ${PROJECT_BINARY_DIR}/include)
    target_include_directories(${call} SYSTEM PRIVATE ${Python3_INCLUDE_DIRS})
    target_compile_options(${call} PRIVATE -Wno-pedantic)   # a type's slots hold functions as void *
    target_link_options(${call} PRIVATE -Wl,-z,undefs)      # the interpreter has Python's functions
    set_target_properties(${call} PROPERTIES OUTPUT_NAME _call PREFIX "" SUFFIX .abi3.so)
endif()

add_custom_target(python_libraries DEPENDS tilus_rt tilus_matmul tilus_bigint tilus_attention ${compiler} tilus-llc
    ${call})
install(TARGETS tilus_rt tilus_matmul tilus_bigint tilus_attention ${compiler} tilus-llc ${call} EXCLUDE_FROM_ALL
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_SKIP COMPONENT python
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT python)
if(NOT TILUS_JANSSON_INSIDE)
    file(REAL_PATH ${JANSSON_LIBRARY} jansson)
    install(FILES ${jansson} RENAME libjansson.so.4 DESTINATION ${CMAKE_INSTALL_LIBDIR}
        PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ WORLD_READ
        COMPONENT python EXCLUDE_FROM_ALL)
endif()
