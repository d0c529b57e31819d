# The target `revision` writes the git revision into a header on every build.
# The header is touched only when the revision changed, so nothing else is
# rebuilt.
set(TILUS_GENERATED_DIR ${PROJECT_BINARY_DIR}/generated)
add_custom_target(revision
    COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${PROJECT_SOURCE_DIR}
            -DHEADER=${TILUS_GENERATED_DIR}/tilus_revision.h
            -P ${PROJECT_SOURCE_DIR}/cmake/write_revision.cmake
    BYPRODUCTS ${TILUS_GENERATED_DIR}/tilus_revision.h
    COMMENT "Reading the git revision"
    VERBATIM)
