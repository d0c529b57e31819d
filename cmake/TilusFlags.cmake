# Compiler and linker flags of everything in the tree.
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# Files have static functions of one name.
set(CMAKE_UNITY_BUILD OFF)
set(CMAKE_C_FLAGS_DEBUG "-O1 -g")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

add_compile_options(-Wall -Wextra -Wpedantic)
if(TILUS_WERROR AND NOT TILUS_SANITIZE)
    # Not with sanitizers: their checks make gcc warn of paths that cannot be.
    add_compile_options(-Werror)
endif()

# Links what is not shipped (sanitized builds, unit tests) in a third of bfd's time.
find_program(TILUS_GOLD ld.gold)
mark_as_advanced(TILUS_GOLD)
if(TILUS_GOLD AND NOT CMAKE_CROSSCOMPILING)
    set(TILUS_QUICK_LINK -fuse-ld=gold)
endif()

if(TILUS_SANITIZE)
    add_link_options(${TILUS_QUICK_LINK})
    # The first report ends the program, so that no test can pass over it.
    set(TILUS_SANITIZE_FLAGS -fsanitize=${TILUS_SANITIZE} -fno-sanitize-recover=all
                             -fno-omit-frame-pointer)
    add_compile_options(${TILUS_SANITIZE_FLAGS})
    add_link_options(${TILUS_SANITIZE_FLAGS})
else()
    add_link_options(-Wl,-z,defs)
endif()
# The cache tells builds apart by it (lib/api/build.h).
add_link_options(-Wl,--build-id)
if(TILUS_FUZZ)
    add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(TILUS_COVERAGE)
    add_compile_options(--coverage)
    add_link_options(--coverage)
endif()
if(TILUS_STATIC_LLVM)
    add_compile_options(-ffunction-sections -fdata-sections)
endif()

if(DEFINED BUILD_SHARED_LIBS AND NOT BUILD_SHARED_LIBS AND NOT TILUS_STATIC_LLVM)
    message(FATAL_ERROR "BUILD_SHARED_LIBS=OFF: Tilus builds static libraries, of the runtime and "
            "of the matrix products, with TILUS_STATIC_LLVM=ON (preset `static`), and shared ones "
            "otherwise; leave BUILD_SHARED_LIBS away")
endif()

# Installed programs find the libraries from their own place, and tilus_compile_in_child the
# compiler from the library's.
file(RELATIVE_PATH TILUS_LIBDIR_OF_PROGRAMS ${CMAKE_INSTALL_FULL_BINDIR}
     ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH TILUS_BINDIR_OF_LIBRARIES ${CMAKE_INSTALL_FULL_LIBDIR}
     ${CMAKE_INSTALL_FULL_BINDIR})
if(NOT TILUS_STATIC_LLVM)
    set(CMAKE_INSTALL_RPATH "$ORIGIN/${TILUS_LIBDIR_OF_PROGRAMS}")
endif()
