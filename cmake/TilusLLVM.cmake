# Finds LLVM and sets TILUS_LLVM_LIBRARIES: the shared library or, with TILUS_STATIC_LLVM or
# TILUS_LLVM_INSIDE, the archives that the compiler needs.
find_package(LLVM 22.1 CONFIG REQUIRED PATHS /usr/lib/llvm-22)

if(TILUS_STATIC_LLVM AND TILUS_LLVM_INSIDE)
    message(FATAL_ERROR "TILUS_STATIC_LLVM builds programs that hold LLVM, TILUS_LLVM_INSIDE a shared "
            "library that does; choose one")
endif()
set(TILUS_LIBRARY_TYPE SHARED)

# Sets `out` to the archives of LLVM that the compiler needs, and of what they need. A program of
# them needs libstdc++, too.
function(find_llvm_archives out)
    find_library(TILUS_ZLIB_ARCHIVE libz.a)
    find_library(TILUS_ZSTD_ARCHIVE libzstd.a)
    if(NOT TILUS_ZLIB_ARCHIVE OR NOT TILUS_ZSTD_ARCHIVE OR NOT TARGET LLVMCore)
        return()
    endif()
    set_property(TARGET LLVMSupport PROPERTY INTERFACE_LINK_LIBRARIES
        rt dl m ${TILUS_ZLIB_ARCHIVE} ${TILUS_ZSTD_ARCHIVE} LLVMDemangle)
    llvm_map_components_to_libnames(archives
        analysis bitreader bitwriter core irreader linker native nvptxcodegen nvptxdesc nvptxinfo
        orcjit passes target)
    set(${out} ${archives} PARENT_SCOPE)
endfunction()

if(NOT TILUS_STATIC_LLVM AND NOT TILUS_LLVM_INSIDE)
    set(TILUS_LLVM_LIBRARIES LLVM)
    return()
endif()

# One program, or the compiler library, holds everything but the C library, which stays shared
# because the program must still be able to dlopen the CUDA driver. The C++ compiler links, for
# LLVM's sake.
enable_language(CXX)
if(TILUS_STATIC_LLVM)
    set(TILUS_LIBRARY_TYPE STATIC)
endif()
find_llvm_archives(TILUS_LLVM_LIBRARIES)
if(NOT TILUS_LLVM_LIBRARIES)
    message(FATAL_ERROR "linking LLVM statically takes its archives, libz.a and libzstd.a")
endif()
add_link_options(-static-libstdc++ -static-libgcc -Wl,--gc-sections -Wl,--as-needed)
