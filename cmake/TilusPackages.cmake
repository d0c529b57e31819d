# Small libraries of others: the matmul library reads JSON by jansson, tilus-tune keeps a
# database by SQLite. Programs that run anywhere have both inside.
if(TILUS_STATIC_LLVM)
    find_library(JANSSON_ARCHIVE libjansson.a REQUIRED)
    find_library(SQLITE_LIBRARY libsqlite3.a REQUIRED)
else()
    find_library(JANSSON_ARCHIVE libjansson.a)
    find_library(SQLITE_LIBRARY sqlite3 REQUIRED)
endif()

# Sets `out` when a shared library can be linked with jansson's archive.
function(check_jansson_archive out)
    set(source ${PROJECT_BINARY_DIR}/check_jansson.c)
    file(WRITE ${source} "#include <jansson.h>\nvoid *f(void) { return json_loads(\"\", 0, 0); }\n")
    try_compile(${out} ${PROJECT_BINARY_DIR}/check_jansson ${source}
        COMPILE_DEFINITIONS -fPIC LINK_OPTIONS -shared -Wl,-z,text
        LINK_LIBRARIES ${JANSSON_ARCHIVE})
endfunction()

# jansson is inside libtilus_matmul, shared or static, where its archive is position
# independent: a user meets no library that no header names. Debian's is not.
if(JANSSON_ARCHIVE AND NOT DEFINED TILUS_JANSSON_INSIDE)
    check_jansson_archive(TILUS_JANSSON_INSIDE)
endif()
if(NOT TILUS_JANSSON_INSIDE)
    set(TILUS_PC_JANSSON "Requires.private: jansson\n")
endif()
if(TILUS_JANSSON_INSIDE OR TILUS_STATIC_LLVM)
    set(TILUS_JANSSON ${JANSSON_ARCHIVE})
else()
    find_library(JANSSON_LIBRARY jansson REQUIRED)
    set(TILUS_JANSSON ${JANSSON_LIBRARY})
endif()
