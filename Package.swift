// swift-tools-version: 6.1
import PackageDescription

/// Every Swift target is compiled in the Swift 6 language mode with the same upcoming features.
let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

/// Where `scripts/libav` puts the part of libav that is used here. Without it these lead nowhere, and the system's is found.
let libav = Context.packageDirectory + "/.libav"
let libavHeaders: [SwiftSetting] = [.unsafeFlags(["-Xcc", "-I\(libav)/include"])]
let libavArchives: [LinkerSetting] = [.unsafeFlags(["-L\(libav)/lib"])]

let package = Package(
    name: "gifreel",
    products: [
        .executable(name: "gifreel", targets: ["gifreel"])
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.5.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.2.0"),
        .package(url: "https://github.com/apple/swift-configuration", from: "1.0.0", traits: ["YAML"]),
        .package(url: "https://github.com/apple/swift-system", from: "1.5.0"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.0.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.0.0"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.5.0"),
    ],
    targets: [
        // C libraries, each with a module map and a shim for what Swift cannot import.
        .systemLibrary(name: "CGIF"),
        .systemLibrary(name: "CAV"),
        .systemLibrary(name: "CCurl"),
        .target(name: "CLinux", cSettings: [.define("_GNU_SOURCE")]),

        // Owners of file descriptors, shared by all who move bytes.
        .target(name: "SystemIO", dependencies: ["CLinux"], swiftSettings: strict),

        // The leaves: none of them knows another.
        .target(
            name: "Media", dependencies: ["CGIF", "CAV", "SystemIO"], swiftSettings: strict + libavHeaders,
            linkerSettings: libavArchives),
        .target(
            name: "Fetch",
            dependencies: ["CCurl", "CLinux", "SystemIO", .product(name: "Crypto", package: "swift-crypto")],
            swiftSettings: strict),
        .target(
            name: "Cache",
            dependencies: [
                "CLinux", "SystemIO",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "GRDB", package: "GRDB.swift"),
            ],
            swiftSettings: strict),
        .target(name: "HTTP", dependencies: ["CLinux", "SystemIO"], swiftSettings: strict),

        // Log lines on standard error.
        .target(
            name: "Logs", dependencies: ["SystemIO", .product(name: "Logging", package: "swift-log")], swiftSettings: strict),

        // The table of settings, their reader and the documents made from it.
        .target(
            name: "Settings",
            dependencies: [
                .product(name: "Configuration", package: "swift-configuration"),
                .product(name: "SystemPackage", package: "swift-system"),
                .product(name: "Yams", package: "Yams"),
            ],
            swiftSettings: strict),

        // What Prometheus reads, behind swift-metrics.
        .target(
            name: "PrometheusMetrics", dependencies: [.product(name: "CoreMetrics", package: "swift-metrics")],
            path: "Sources/Metrics", exclude: ["Families.swift", "LabelledCounter.swift", "ProcessReadings.swift"],
            swiftSettings: strict),

        // The worker process around Media.
        .target(name: "Sandbox", dependencies: ["Media", "CLinux", "SystemIO"], swiftSettings: strict),

        // The composition root and the executable.
        .target(
            name: "Service",
            dependencies: [
                "Media", "Sandbox", "Fetch", "Cache", "HTTP", "Logs", "PrometheusMetrics", "SystemIO", "CLinux",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "Instrumentation", package: "swift-distributed-tracing"),
                .product(name: "Configuration", package: "swift-configuration"),
                .product(name: "SystemPackage", package: "swift-system"),
                .product(name: "Yams", package: "Yams"),
            ],
            path: "Sources",
            sources: [
                "Renditions", "Web/Access", "Web/Admin", "Web/Answers", "Web/Facts", "Web/FrontDoor+Pages.swift",
                "Web/FrontDoor.swift", "Web/Metrics", "Web/Mounts", "Web/Pages/ErrorPage.swift", "Web/Pages/HTMLText.swift",
                "Web/Pages/HomePage.swift",
                "Web/Pages/OEmbed.swift", "Web/Pages/PageDesk.swift", "Web/Pages/PageFacts.swift", "Web/Pages/PageLinks.swift",
                "Web/Pages/PagePolicy.swift", "Web/Pages/PageTag.swift", "Web/Pages/PageTemplate.swift",
                "Web/Pages/PlayerPage.swift", "Web/Prewarm", "Web/Routing", "Web/Tracing", "Web/Uploads", "Prewarm",
                "Metrics/Families.swift", "Metrics/LabelledCounter.swift",
                "Metrics/ProcessReadings.swift", "gifreel/Commands", "gifreel/Composition", "gifreel/Configuration",
                "gifreel/Logging",
            ],
            // In the program itself, so that it needs no files beside it.
            resources: [.embedInCode("Web/Pages/Resources")],
            swiftSettings: strict),
        .executableTarget(
            name: "gifreel",
            dependencies: ["Service", "Settings", .product(name: "ArgumentParser", package: "swift-argument-parser")],
            exclude: ["Commands", "Composition", "Configuration", "Logging"],
            swiftSettings: strict),

        // What scripts/bench runs.
        .executableTarget(name: "Benchmarks", dependencies: ["Media"], swiftSettings: strict),

        // Tests mirror the targets.
        .target(name: "TestSupport", dependencies: ["SystemIO", "CLinux"], path: "Tests/TestSupport", swiftSettings: strict),
        .testTarget(name: "StructureTests", swiftSettings: strict),
        .testTarget(name: "SystemIOTests", dependencies: ["SystemIO", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "MediaTests", dependencies: ["Media", "SystemIO", "TestSupport"],
            exclude: ["Fuzzing/Corpus", "Fuzzing/gif.dict"],
            swiftSettings: strict),
        .testTarget(name: "SandboxTests", dependencies: ["Sandbox", "CLinux", "TestSupport"], swiftSettings: strict),
        .testTarget(name: "FetchTests", dependencies: ["Fetch", "TestSupport"], swiftSettings: strict),
        .testTarget(name: "CacheTests", dependencies: ["Cache", "TestSupport"], swiftSettings: strict),
        .testTarget(name: "HTTPTests", dependencies: ["CLinux", "HTTP", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "LogsTests", dependencies: ["Logs", "SystemIO", .product(name: "Logging", package: "swift-log")],
            swiftSettings: strict),
        .testTarget(name: "PrometheusMetricsTests", dependencies: ["PrometheusMetrics"], swiftSettings: strict),
        .testTarget(name: "DocumentationTests", swiftSettings: strict),
        .testTarget(name: "SettingsTests", dependencies: ["Settings", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "ServiceTests",
            dependencies: [
                "Service", "Cache", "Fetch", "HTTP", "Media", "Sandbox", "SystemIO", "TestSupport",
                .product(name: "Crypto", package: "swift-crypto"),
            ],
            path: "Tests", sources: ["ApplicationTests", "PrewarmTests", "RenditionsTests", "WebTests"],
            swiftSettings: strict),
    ]
)
