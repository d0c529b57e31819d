# What `cmake --install` lays down, in two components: `runtime` (all that a
# server which only launches kernels needs) and `compiler`, on top of it.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Tilus)
set(header_dir ${CMAKE_INSTALL_INCLUDEDIR}/tilus)

install(FILES include/tilus/export.h include/tilus/kernel.h include/tilus/runtime.h
        DESTINATION ${header_dir} COMPONENT runtime)
install(FILES include/tilus/tilus.h DESTINATION ${header_dir} COMPONENT compiler)
install(DIRECTORY kernels/ DESTINATION ${CMAKE_INSTALL_DATADIR}/tilus/kernels
        COMPONENT compiler FILES_MATCHING PATTERN *.tilus)

# The CMake package: Tilus::runtime, and Tilus::compiler where it is installed.
function(install_library library component)
    install(TARGETS ${library} EXPORT Tilus-${component} COMPONENT ${component}
            LIBRARY NAMELINK_COMPONENT ${component})
    install(EXPORT Tilus-${component} NAMESPACE Tilus:: DESTINATION ${package_dir}
            COMPONENT ${component})
endfunction()

install_library(tilus_rt runtime)
install_library(tilus_compiler compiler)
configure_package_config_file(cmake/TilusConfig.cmake.in
    ${PROJECT_BINARY_DIR}/TilusConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/TilusConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/TilusConfig.cmake
        ${PROJECT_BINARY_DIR}/TilusConfigVersion.cmake
        DESTINATION ${package_dir} COMPONENT runtime)

# pkg-config. The prefix follows the file, so an installed tree can be moved.
file(RELATIVE_PATH TILUS_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
set(TILUS_PC_LIBS_PRIVATE "-lm")
if(TILUS_STATIC_LLVM)
    list(TRANSFORM TILUS_LLVM_LIBRARIES PREPEND -l OUTPUT_VARIABLE archives)
    list(JOIN archives " " archives)
    string(CONCAT TILUS_PC_LIBS_PRIVATE "-L${LLVM_LIBRARY_DIRS} -Wl,--start-group "
           "${archives} -Wl,--end-group -lz -lzstd -lstdc++ -ldl -lm")
endif()
foreach(name tilus tilus-rt)
    configure_file(cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/tilus.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT compiler)
install(FILES ${PROJECT_BINARY_DIR}/tilus-rt.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT runtime)
