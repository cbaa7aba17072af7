#include "clinux_build.h"

const char *clinux_build_revision(void) {
    return GIFREEL_REVISION;
}

const char *clinux_build_libraries(void) {
    return GIFREEL_LIBRARIES;
}
