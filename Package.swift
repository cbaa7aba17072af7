// swift-tools-version: 6.2
import PackageDescription

/// Every Swift target is compiled in the Swift 6 language mode with the same upcoming features.
let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

/// Debug builds optimise what works on pixels, and what makes pictures for tests, with its assertions: tests would take several times as
/// long otherwise.
let optimized: [SwiftSetting] = [.unsafeFlags(["-O", "-assert-config", "Debug"], .when(configuration: .debug))]

/// The directory of the reduced libav that `scripts/libav` builds. If it does not exist, the system's libav is found.
let libav = Context.packageDirectory + "/.libav"
let libavHeaders: [SwiftSetting] = [.unsafeFlags(["-Xcc", "-I\(libav)/include"])]
/// libvpx gets its memory from Media (`VP9Memory`).
let libavArchives: [LinkerSetting] = [.unsafeFlags(["-L\(libav)/lib", "-Xlinker", "--wrap=vpx_calloc"])]

/// What the program says of its build, as `scripts/lib/build.sh` sets it; empty in other builds. A C target has it, because a change
/// then compiles one file.
let build: [CSetting] = [
    .define("GIFREEL_REVISION", to: "\"\(Context.environment["BUILD_REVISION"] ?? "")\""),
    .define("GIFREEL_LIBRARIES", to: "\"\(Context.environment["BUILD_LIBRARIES"] ?? "")\""),
]

let package = Package(
    name: "gifreel",
    products: [
        .executable(name: "gifreel", targets: ["gifreel"])
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", exact: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log", exact: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", exact: "2.13.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", exact: "1.7.3"),
        .package(url: "https://github.com/apple/swift-collections", exact: "1.6.0"),
        .package(url: "https://github.com/jpsim/Yams", exact: "6.2.2"),
    ],
    targets: [
        // C libraries: module maps, and shims for what Swift cannot import.
        .systemLibrary(name: "CMedia"),
        .systemLibrary(name: "CSystem"),
        .target(name: "CLinux", cSettings: [.define("_GNU_SOURCE")] + build),

        // File descriptors and buffers, for all targets that move bytes.
        .target(
            name: "SystemIO", dependencies: ["CLinux", .product(name: "DequeModule", package: "swift-collections")],
            swiftSettings: strict),

        // SHA-256 and its message authentication codes, by OpenSSL.
        .target(name: "Digests", dependencies: ["CSystem"], swiftSettings: strict),

        // The HTTP client on libcurl, with signatures for S3.
        .target(
            name: "HTTPClient",
            dependencies: [
                "CSystem", "Digests", "SystemIO", .product(name: "DequeModule", package: "swift-collections"),
            ],
            swiftSettings: strict),

        // The leaves, which do not import one another.
        .target(
            name: "Media", dependencies: ["CMedia", "SystemIO"],
            swiftSettings: strict + optimized + libavHeaders, linkerSettings: libavArchives),
        .target(
            name: "Fetch", dependencies: ["HTTPClient", "CSystem", "Digests", "CLinux", "SystemIO"],
            swiftSettings: strict),
        // Renditions on disk and in an S3-compatible bucket, their rows in SQLite, purges.
        .target(
            name: "Store", dependencies: ["HTTPClient", "CSystem", "Digests", "CLinux", "SystemIO"], swiftSettings: strict),
        .target(name: "HTTP", dependencies: ["CLinux", "SystemIO"], swiftSettings: strict),

        // What nodes share through Redis or Valkey: leases, records, purges, prewarm lists.
        .target(
            name: "Fleet",
            dependencies: [
                "Store", "HTTPClient", "CSystem", "CLinux", "SystemIO",
                .product(name: "DequeModule", package: "swift-collections"),
            ],
            swiftSettings: strict),

        // Log lines, metrics behind swift-metrics, and traces behind swift-distributed-tracing. Those packages have targets called Metrics
        // and Tracing.
        .target(
            name: "Telemetry",
            dependencies: [
                "HTTPClient", "CLinux", "SystemIO",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
            ],
            swiftSettings: strict),

        // The table of settings, their reader and the documents generated from it.
        .target(
            name: "Settings",
            dependencies: [
                "HTTP", "Store", "Fleet", "Fetch", "Media", "Sandbox", "Renditions", "SystemIO",
                .product(name: "Yams", package: "Yams"),
            ],
            swiftSettings: strict),

        // HTML pages: tags, and the replacement of GIF images by videos.
        .target(name: "Markup", swiftSettings: strict),

        // The worker process around Media.
        .target(name: "Sandbox", dependencies: ["Media", "CLinux", "SystemIO"], swiftSettings: strict),

        // The core: from the rendition that is requested to its finished file. It knows nothing of HTTP.
        .target(
            name: "Renditions",
            dependencies: [
                "Media", "Sandbox", "Fetch", "Store", "Fleet", "Telemetry", "SystemIO",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
            ],
            swiftSettings: strict),

        // Lists of renditions to make in advance: jobs of a server and runs of the command line.
        .target(
            name: "Prewarm",
            dependencies: [
                "Renditions", "Sandbox", "Fetch", "Store", "Fleet", "Markup", "HTTPClient",
                "Telemetry", "Digests", "SystemIO",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),

        // The HTTP interface: routes, access control, responses, uploads, pages, administration.
        .target(
            name: "Web",
            dependencies: [
                "Renditions", "Prewarm", "HTTP", "HTTPClient", "Telemetry", "Media", "Sandbox", "Fetch", "Store", "Fleet",
                "Digests", "SystemIO",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
            ],
            // The resources have minified copies of the scripts.
            exclude: ["Pages/Scripts"],
            // Embedded in the executable, which then needs no files beside it.
            resources: [.embedInCode("Pages/Resources")],
            swiftSettings: strict),

        // The commands and the composition root.
        .executableTarget(
            name: "gifreel",
            dependencies: [
                "Renditions", "Web", "Prewarm", "HTTP", "HTTPClient", "Media", "Sandbox", "Fetch", "Store",
                "Fleet", "Telemetry", "Markup", "Settings", "SystemIO", "CLinux",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),

        // Tests mirror the targets.
        .systemLibrary(name: "CWebPEncoder", path: "Tests/CWebPEncoder"),
        .target(
            name: "TestSupport", dependencies: ["SystemIO", "CLinux", "CWebPEncoder", "CSystem"], path: "Tests/TestSupport",
            swiftSettings: strict + optimized),
        .testTarget(name: "StructureTests", swiftSettings: strict),
        .testTarget(name: "TestSupportTests", dependencies: ["TestSupport"], swiftSettings: strict),
        .testTarget(name: "SystemIOTests", dependencies: ["SystemIO", "CSystemCalls", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "MediaTests", dependencies: ["Media", "SystemIO", "TestSupport"],
            exclude: ["Fuzzing/Corpus", "Fuzzing/gif.dict", "Fuzzing/apng.dict", "Fuzzing/webp.dict", "Fuzzing/clip.dict"],
            swiftSettings: strict),
        .testTarget(name: "SandboxTests", dependencies: ["Sandbox", "CLinux", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "FetchTests", dependencies: ["Fetch", "HTTPClient", "SystemIO", "TestSupport"], swiftSettings: strict),
        .testTarget(name: "HTTPClientTests", dependencies: ["HTTPClient", "SystemIO", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "StoreTests",
            dependencies: ["CSystemCalls", "Store", "HTTPClient", "Digests", "SystemIO", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "FleetTests", dependencies: ["Fleet", "Store", "SystemIO", "TestSupport"], swiftSettings: strict),
        .testTarget(name: "DigestsTests", dependencies: ["Digests", "SystemIO"], swiftSettings: strict),
        .testTarget(name: "HTTPTests", dependencies: ["CLinux", "HTTP", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "TelemetryTests",
            dependencies: [
                "Telemetry", "HTTPClient", "SystemIO", "TestSupport", .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),
        .testTarget(name: "MarkupTests", dependencies: ["Markup", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "DocumentationTests", dependencies: ["TestSupport", .product(name: "Yams", package: "Yams")],
            swiftSettings: strict),
        .testTarget(
            name: "SettingsTests", dependencies: ["Settings", "HTTP", "Store", "Fetch", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "RenditionsTests",
            dependencies: [
                "Renditions", "Store", "Fleet", "CSystem", "Fetch", "Media", "Sandbox", "Digests",
                "SystemIO", "TestSupport", .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),
        // Failing and simulated disks, and kernels without Landlock.
        .target(name: "CSystemCalls", path: "Tests/CSystemCalls"),
        // The core and the cache on a simulated disk, clock and scheduler.
        .testTarget(
            name: "SimulationTests",
            dependencies: [
                "CSystemCalls", "Renditions", "Store", "Fetch", "Media", "Sandbox", "Digests", "SystemIO",
                "TestSupport",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "WebTests",
            dependencies: [
                "Web", "Renditions", "Prewarm", "Store", "Fleet", "Fetch", "HTTP", "HTTPClient", "Media",
                "Telemetry",
                "Sandbox", "Digests", "SystemIO", "TestSupport",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "PrewarmTests",
            dependencies: [
                "Prewarm", "Fleet", "Fetch", "HTTPClient", "Store", "Telemetry", "Markup", "SystemIO", "TestSupport",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),
        // The built program, over its interfaces.
        .testTarget(
            name: "ApplicationTests",
            dependencies: [
                "gifreel", "Renditions", "Web", "Prewarm", "Store", "Fetch", "HTTP", "Media", "Telemetry", "Sandbox",
                "HTTPClient", "CLinux", "CSystemCalls",
                "Digests", "SystemIO", "TestSupport",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),
    ]
)
