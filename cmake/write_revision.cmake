# Writes HEADER with the git revision of SOURCE_DIR, if it differs from what is
# there. Outside a checkout, or in another project's, it is "unknown".
set(revision unknown)

function(git out)
    execute_process(COMMAND git -C ${SOURCE_DIR} ${ARGN}
        OUTPUT_VARIABLE text RESULT_VARIABLE status ERROR_QUIET
        OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT status EQUAL 0)
        set(text "")
    endif()
    set(${out} "${text}" PARENT_SCOPE)
endfunction()

git(top rev-parse --show-toplevel)
file(REAL_PATH ${SOURCE_DIR} here)
if(top STREQUAL here)
    git(head rev-parse --short=12 HEAD)
    git(changes status --porcelain --untracked-files=no)
    if(head AND changes)
        set(revision ${head}-dirty)
    elseif(head)
        set(revision ${head})
    endif()
endif()

set(content "/* Written at each build. */\n#define TILUS_GIT_REVISION \"${revision}\"\n")
if(EXISTS ${HEADER})
    file(READ ${HEADER} old)
endif()
if(NOT content STREQUAL "${old}")
    file(WRITE ${HEADER} "${content}")
endif()
