# SPDX-License-Identifier: Apache-2.0
# Make one C file of the files in FOLDER: yk_page_find() by name.
set(NAMES "")
set(BODY "")
file(GLOB FILES ${FOLDER}/*.html ${FOLDER}/*.css ${FOLDER}/*.js ${FOLDER}/*.svg)
list(SORT FILES)
set(N 0)
foreach(path ${FILES})
  get_filename_component(name ${path} NAME)
  file(READ ${path} hex HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
  string(APPEND BODY "static const unsigned char file_${N}[] = {${bytes}0};\n")
  string(APPEND NAMES "    {\"${name}\", file_${N}, sizeof(file_${N}) - 1},\n")
  math(EXPR N "${N} + 1")
endforeach()
file(WRITE ${OUTPUT} "#include \"yoyaku/template.h\"
#include <string.h>
${BODY}
static const struct {
    const char *name;
    const unsigned char *bytes;
    apr_size_t len;
} files[] = {
${NAMES}};

const char *yk_page_find(apr_size_t *len, const char *name)
{
    for (apr_size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (strcmp(files[i].name, name) == 0) {
            *len = files[i].len;
            return (const char *) files[i].bytes;
        }
    }
    return NULL;
}
")
