# Lays down what `cmake --install` installs, in six components: `runtime` (all that a
# server which only launches kernels needs), on top of it `matmul`, `bigint`, `attention` and
# `compiler`, and `documents`. With TILUS_STATIC_LLVM the compiler is inside the tools, and not a library to
# use. No installed file holds a path of this machine: the tree may be moved.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Tilus)
string(REGEX REPLACE "/Tilus$" "/tilus" doc_dir ${CMAKE_INSTALL_DOCDIR})    # as packages are called
string(REGEX REPLACE "/Tilus$" "/tilus" full_doc_dir ${CMAKE_INSTALL_FULL_DOCDIR})
set(header_dir ${CMAKE_INSTALL_INCLUDEDIR}/tilus)

file(GLOB headers CONFIGURE_DEPENDS include/tilus/*.h)
set(compiler_headers ${headers})
list(FILTER compiler_headers INCLUDE REGEX "/(tilus|ir|pass)\\.h$")
list(FILTER headers EXCLUDE REGEX "/(tilus|ir|pass|matmul|bigint|attention)\\.h$")
install(FILES ${headers} DESTINATION ${header_dir} COMPONENT runtime)
install(FILES LICENSE NOTICES.md DESTINATION ${doc_dir} COMPONENT runtime)
install(FILES README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md
        DESTINATION ${doc_dir} COMPONENT documents)
install(DIRECTORY docs examples DESTINATION ${doc_dir} COMPONENT documents)

# Documents link to these files where they are in the source tree: kernels and headers as links to the installed ones.
install(DIRECTORY bench/results DESTINATION ${doc_dir}/bench COMPONENT documents PATTERN *.png EXCLUDE)
install(DIRECTORY test/abi DESTINATION ${doc_dir}/test COMPONENT documents)
foreach(file Containerfile bench/README.md bench/peers.csv bench/perplexity/calibration.txt bench/perplexity/text.txt
        python/pyproject.toml python/tests/formats.csv python/tests/package/test_decode_step.py test/mutants.md
        tools/tilus-explain/peaks.def)
    get_filename_component(folder ${file} DIRECTORY)
    install(FILES ${file} DESTINATION ${doc_dir}/${folder} COMPONENT documents)
endforeach()
foreach(target kernels include)
    set(installed ${CMAKE_INSTALL_FULL_DATADIR}/tilus/kernels)
    if(target STREQUAL include)
        set(installed ${CMAKE_INSTALL_FULL_INCLUDEDIR})
    endif()
    file(RELATIVE_PATH link ${full_doc_dir} ${installed})
    install(CODE "get_filename_component(folder \"${doc_dir}\" ABSOLUTE BASE_DIR \"\${CMAKE_INSTALL_PREFIX}\")
                  file(CREATE_LINK \"${link}\" \"\$ENV{DESTDIR}\${folder}/${target}\" SYMBOLIC)" COMPONENT documents)
endforeach()
install(DIRECTORY editors DESTINATION ${CMAKE_INSTALL_DATADIR}/tilus COMPONENT documents
        PATTERN update.py EXCLUDE)
install(DIRECTORY kernels/ DESTINATION ${CMAKE_INSTALL_DATADIR}/tilus/kernels
        COMPONENT compiler FILES_MATCHING PATTERN *.tilus)

# A pkg-config file finds everything from its own place.
set(pc_dir ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH TILUS_PC_PREFIX ${pc_dir} ${CMAKE_INSTALL_PREFIX})
file(RELATIVE_PATH TILUS_PC_LIBDIR ${pc_dir} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH TILUS_PC_INCLUDEDIR ${pc_dir} ${CMAKE_INSTALL_FULL_INCLUDEDIR})

# The CMake package: Tilus::runtime; Tilus::matmul, Tilus::bigint, Tilus::attention and
# Tilus::compiler where installed.
function(install_library library component)
    install(TARGETS ${library} EXPORT Tilus-${component} COMPONENT ${component}
            LIBRARY NAMELINK_COMPONENT ${component})
    install(EXPORT Tilus-${component} NAMESPACE Tilus:: DESTINATION ${package_dir}
            COMPONENT ${component})
endfunction()

install_library(tilus_rt runtime)
install_library(tilus_matmul matmul)
install(FILES include/tilus/matmul.h DESTINATION ${header_dir} COMPONENT matmul)
configure_file(cmake/tilus-matmul.pc.in ${PROJECT_BINARY_DIR}/tilus-matmul.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tilus-matmul.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT matmul)
install_library(tilus_bigint bigint)
install(FILES include/tilus/bigint.h DESTINATION ${header_dir} COMPONENT bigint)
configure_file(cmake/tilus-bigint.pc.in ${PROJECT_BINARY_DIR}/tilus-bigint.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tilus-bigint.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT bigint)
install_library(tilus_attention attention)
install(FILES include/tilus/attention.h DESTINATION ${header_dir} COMPONENT attention)
configure_file(cmake/tilus-attention.pc.in ${PROJECT_BINARY_DIR}/tilus-attention.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tilus-attention.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT attention)
if(NOT TILUS_STATIC_LLVM)
    install_library(tilus_compiler compiler)
    install(FILES ${compiler_headers} DESTINATION ${header_dir} COMPONENT compiler)
    configure_file(cmake/tilus.pc.in ${PROJECT_BINARY_DIR}/tilus.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/tilus.pc
            DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT compiler)
endif()
configure_package_config_file(cmake/TilusConfig.cmake.in
    ${PROJECT_BINARY_DIR}/TilusConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/TilusConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/TilusConfig.cmake
        ${PROJECT_BINARY_DIR}/TilusConfigVersion.cmake
        DESTINATION ${package_dir} COMPONENT runtime)

configure_file(cmake/tilus-rt.pc.in ${PROJECT_BINARY_DIR}/tilus-rt.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tilus-rt.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT runtime)
