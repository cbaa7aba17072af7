# Gifreel in two stages: a compiler that builds it, and an image without one that runs it.
FROM swift:6.1-bookworm AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        libavcodec-dev libavformat-dev libavutil-dev libswscale-dev libx264-dev libwebp-dev \
        libgif-dev libcurl4-openssl-dev libsqlite3-dev zlib1g-dev \
        dpkg-dev make nasm pkg-config \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY scripts/libav scripts/libav
RUN scripts/libav
# Dependencies first: they change less often than the sources.
COPY Package.swift ./
RUN swift package resolve
COPY Sources Sources
COPY Tests Tests
RUN swift build -c release --static-swift-stdlib --product gifreel \
    && install -D "$(swift build -c release --static-swift-stdlib --show-bin-path)/gifreel" /out/gifreel

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        libx264-164 libwebp7 zlib1g libgif7 libcurl4 libsqlite3-0 ca-certificates curl \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /var/lib/gifreel --create-home gifreel \
    && install -d -o gifreel -g gifreel /var/cache/gifreel
COPY --from=build /out/gifreel /usr/local/bin/gifreel
COPY config/gifreel.yaml /etc/gifreel/gifreel.yaml
USER gifreel
ENV GIFREEL_SERVER_HOST=0.0.0.0 GIFREEL_CACHE_DIR=/var/cache/gifreel
VOLUME /var/cache/gifreel
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s \
    CMD curl -fsS http://127.0.0.1:8080/readyz || exit 1
ENTRYPOINT ["gifreel"]
CMD ["serve", "--config", "/etc/gifreel/gifreel.yaml"]
