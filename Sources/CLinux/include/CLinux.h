#ifndef GIFREEL_CLINUX_H
#define GIFREEL_CLINUX_H

// Functions that Glibc's Swift module lacks, one header per concern.
#include "clinux_build.h"
#include "clinux_confinement.h"
#include "clinux_files.h"
#include "clinux_process.h"
#include "clinux_sockets.h"

#endif
