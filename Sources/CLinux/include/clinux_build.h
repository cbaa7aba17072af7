#ifndef GIFREEL_CLINUX_BUILD_H
#define GIFREEL_CLINUX_BUILD_H

/// The revision of the source, with `-dirty` if it had changes; empty if the build did not say.
const char *clinux_build_revision(void);

/// The source packages of Debian whose code is linked statically, as `name=version`, separated by commas; empty if the build did not say.
const char *clinux_build_libraries(void);

#endif
