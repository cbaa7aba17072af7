# Builds Gifreel with a compiler in the first stage; the final image contains no compiler.
#
# The source is under the MIT licence. The binary links libx264 and a GPL build of libav, so the image is distributed under
# the GPL, version 3 or later: see docs/NOTICES.md, which the image contains together with the licence texts.
FROM swift:6.3-bookworm AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        libavcodec-dev libavformat-dev libavutil-dev libswscale-dev libx264-dev libwebp-dev libaom-dev libvpx-dev libpng-dev libjpeg-dev \
        libgif-dev liblcms2-dev libcurl4-openssl-dev libhiredis-dev libssl-dev libsqlite3-dev zlib1g-dev \
        dpkg-dev make nasm pkg-config python3 \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY scripts/libav scripts/libav
COPY scripts/lib/build.sh scripts/lib/build.sh
RUN scripts/libav
# Dependencies before sources, because they change less often: the layer is reused.
COPY Package.swift ./
RUN swift package resolve
COPY Sources Sources
COPY Tests Tests
# Without symbols, which more than a third of the program would be. scripts/package keeps them in a package of their own.
# docker build --build-arg BUILD_REVISION=$(git rev-parse --short=12 HEAD): `gifreel --version` has it.
ARG BUILD_REVISION=
RUN . scripts/lib/build.sh \
    && swift build -c release --static-swift-stdlib --product gifreel \
    && install -D -s "$(swift build -c release --static-swift-stdlib --show-bin-path)/gifreel" /out/gifreel
# The licence texts of everything that is linked statically.
RUN mkdir -p /out/licences \
    && for package in .build/checkouts/*; do \
        for text in "$package"/LICENSE* "$package"/NOTICE*; do \
            if [ -f "$text" ]; then cp "$text" "/out/licences/$(basename "$package")-$(basename "$text")"; fi; \
        done; \
    done \
    && for package in libavcodec libaom libvpx libwebp libpng libjpeg liblcms2; do \
        cp "/usr/share/doc/$package-dev/copyright" "/out/licences/$package-copyright"; \
    done \
    && cp "$(echo /usr/share/doc/libicu[0-9]* | cut -d' ' -f1)/copyright" /out/licences/icu-copyright  # Foundation contains ICU.

FROM debian:bookworm-slim AS runtime
LABEL org.opencontainers.image.title="Gifreel" \
    org.opencontainers.image.description="Converts animated GIFs to looping, muted H.264 MP4s over HTTP" \
    org.opencontainers.image.licenses="GPL-3.0-or-later"
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        libx264-164 zlib1g libgif7 libcurl4 libhiredis0.14 libssl3 libsqlite3-0 ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /var/lib/gifreel --create-home gifreel \
    && install -d -o gifreel -g root -m 775 /var/cache/gifreel

# The bill of materials of the image.
FROM build AS documents
COPY docs/NOTICES.md docs/
COPY scripts/lib/sbom.py scripts/lib/
COPY --from=runtime /var/lib/dpkg /runtime
ARG SOURCE_DATE_EPOCH=
RUN export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(date +%s)} \
    && version=$(sed -n 's/.*version = "\(.*\)".*/\1/p' Sources/gifreel/Composition/Version.swift) \
    && mkdir /out/documents \
    && python3 scripts/lib/sbom.py /out/gifreel /out/documents --version "$version" --system /runtime

FROM runtime
COPY --from=build /out/gifreel /usr/local/bin/gifreel
COPY --from=build /out/licences /usr/share/doc/gifreel/licences
COPY --from=documents /out/documents /usr/share/doc/gifreel
COPY LICENSE docs/NOTICES.md docs/vex.cdx.json /usr/share/doc/gifreel/
COPY config/gifreel.yaml /etc/gifreel/gifreel.yaml
# A number, because runAsNonRoot of Kubernetes refuses an image whose user has only a name. OpenShift chooses another one, in root's group.
USER 10001
ENV GIFREEL_SERVER_HOST=0.0.0.0 GIFREEL_CACHE_DIR=/var/cache/gifreel
VOLUME /var/cache/gifreel
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s \
    CMD ["gifreel", "health", "--config", "/etc/gifreel/gifreel.yaml"]
ENTRYPOINT ["gifreel"]
CMD ["serve", "--config", "/etc/gifreel/gifreel.yaml"]
