# Lays down what `cmake --install` installs, in three components: `runtime` (all that a
# server which only launches kernels needs), and on top of it `matmul` and `compiler`. With
# TILUS_STATIC_LLVM the compiler is inside the tools, and not a library to use.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Tilus)
set(header_dir ${CMAKE_INSTALL_INCLUDEDIR}/tilus)

install(FILES include/tilus/artefact.h include/tilus/export.h include/tilus/kernel.h
              include/tilus/runtime.h include/tilus/types.h DESTINATION ${header_dir} COMPONENT runtime)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT compiler
        FILES_MATCHING PATTERN *.md)
install(DIRECTORY kernels/ DESTINATION ${CMAKE_INSTALL_DATADIR}/tilus/kernels
        COMPONENT compiler FILES_MATCHING PATTERN *.tilus)

# A pkg-config file finds the prefix from its own place, so an installed tree can
# be moved.
file(RELATIVE_PATH TILUS_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)

# The CMake package: Tilus::runtime; Tilus::matmul and Tilus::compiler where installed.
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
if(NOT TILUS_STATIC_LLVM)
    install_library(tilus_compiler compiler)
    install(FILES include/tilus/tilus.h DESTINATION ${header_dir} COMPONENT compiler)
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
