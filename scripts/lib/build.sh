# Sourced by the scripts that build releases, in the project's folder: has the program know its revision and the versions of the libraries
# whose code it contains. A build gets both by Package.swift. Values that are set already stay, as in an image without a repository.

if [ -z "${BUILD_REVISION:-}" ] && revision=$(git rev-parse --short=12 HEAD 2>/dev/null); then
    if [ -n "$(git status --porcelain 2>/dev/null)" ]; then revision=$revision-dirty; fi
    BUILD_REVISION=$revision
fi
# The archives are those of the packages from which scripts/libav has built, or builds now ($builds_libav).
if [ -z "${BUILD_LIBRARIES:-}" ] && { [ -n "${builds_libav:-}" ] || [ -e .libav/made ]; }; then
    BUILD_LIBRARIES=$(dpkg-query -W -f '${source:Package}=${source:Version}\n' \
        libavcodec-dev libaom-dev libvpx-dev libwebp-dev libpng-dev libjpeg-dev liblcms2-dev 2>/dev/null | sort -u | paste -sd , -)
fi
export BUILD_REVISION="${BUILD_REVISION:-}" BUILD_LIBRARIES="${BUILD_LIBRARIES:-}"
