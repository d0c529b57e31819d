# Small libraries of others: the matmul library reads JSON, tilus-tune keeps a database.
# Programs that run anywhere have them inside.
if(TILUS_STATIC_LLVM)
    find_library(JANSSON_LIBRARY libjansson.a REQUIRED)
    find_library(SQLITE_LIBRARY libsqlite3.a REQUIRED)
else()
    find_library(JANSSON_LIBRARY jansson REQUIRED)
    find_library(SQLITE_LIBRARY sqlite3 REQUIRED)
endif()
