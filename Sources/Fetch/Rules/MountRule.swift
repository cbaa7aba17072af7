/// The sources that a mount makes available, and the rights of requests for them.
package struct MountRule: Sendable, Equatable {
    /// The URL to which paths are appended.
    package let root: SourceURL
    /// Header fields for requests to the origin, as `Name: value`. If any, the sources are available only through mounts.
    package var fields: [String] = []
    /// Whether requests must be signed; nil to use the general setting.
    package var requiresSignature: Bool?
    private let folder: PathPrefix
    /// The folder, or the allowed paths in it.
    private let paths: [PathPrefix]

    /// - Parameters:
    ///   - root: A web address, or a folder of objects or files.
    ///   - allow: The paths below the root that are available; empty for all. ``isPath(_:)`` must accept each.
    package init(_ root: SourceURL, allow: [String] = []) {
        self.root = root
        folder = PathPrefix(below: root.path)
        paths = allow.isEmpty ? [folder] : allow.compactMap { PathPrefix($0, below: root.path) }
    }

    /// Whether `text` is valid in `mounts.NAME.allow`.
    package static func isPath(_ text: String) -> Bool { !text.hasPrefix("/") && PathPrefix(text) != nil }

    /// The canonical form of the root, with a trailing slash.
    package var base: String { root.canonical.hasSuffix("/") ? root.canonical : root.canonical + "/" }

    /// Returns the source for a URL that begins with ``base``.
    package func source(_ text: String) throws(SourceURLError) -> SourceURL {
        switch root {
        case .web: try SourceURL(text)
        case .object(let folder): .object(try ObjectAddress(text, bucket: folder.bucket, at: folder.service))
        case .file(let folder): .file(try FileAddress(text, below: folder.directory))
        }
    }

    /// Returns the source with a canonical URL that only mounts can name; nil if it is below no mount.
    package static func source(_ canonical: String, below mounts: some Sequence<MountRule>) -> SourceURL? {
        let found = mounts.filter { $0.root.isOfMount && canonical.hasPrefix($0.base) }
            .compactMap { mount in (try? mount.source(canonical)).map { (mount: mount, source: $0) } }
        return (found.first { $0.mount.serves($0.source) } ?? found.first)?.source
    }

    /// Whether the mount makes the source available. A file with a hidden segment in its path is available only if ``root`` or
    /// an allowed path names that segment.
    package func serves(_ source: SourceURL) -> Bool {
        switch (root, source) {
        case (.web(let root), .web(let address)):
            root.isSameOrigin(as: address) && paths.contains { $0.grants(address.comparable) }
        case (.object(let root), .object(let object)):
            root.bucket == object.bucket && root.address.isSameOrigin(as: object.address)
                && paths.contains { $0.grants(object.address.comparable) }
        case (.file(let root), .file(let file)):
            root.directory == file.directory
                && paths.contains { path in
                    path.length(in: file.comparable).map { Self.isVisible(file.comparable.exact, after: $0) } ?? false
                }
        default: false
        }
    }

    /// Whether no segment after the first `count` bytes of the path begins with a dot.
    private static func isVisible(_ path: [UInt8], after count: Int) -> Bool {
        !(count..<path.count).contains { path[$0] == UInt8(ascii: ".") && path[$0 - 1] == UInt8(ascii: "/") }
    }

    // MARK: Protection

    /// Whether an origin may confuse the source with a source of this mount that requires signed requests.
    func needsSignature(_ source: SourceURL) -> Bool {
        requiresSignature == true && mayShareOrigin(with: source) && paths.contains { $0.mayContain(source.comparable) }
    }

    /// Whether an origin may confuse the source with a source of this mount that is available only through mounts.
    func isPrivate(_ source: SourceURL) -> Bool {
        !fields.isEmpty && mayShareOrigin(with: source) && folder.mayContain(source.comparable)
    }

    /// Whether requests for the source carry ``fields``.
    func lendsFields(to source: SourceURL) -> Bool {
        guard !fields.isEmpty, case .web(let root) = root, case .web(let address) = source else { return false }
        return root.isSameOrigin(as: address) && folder.grants(address.comparable)
    }

    /// Whether an origin may confuse sources of the two mounts.
    package func overlaps(_ other: MountRule) -> Bool {
        mayShareOrigin(with: other.root)
            && (folder.mayContain(other.root.comparable) || other.folder.mayContain(root.comparable))
    }

    /// Compares origins, because clients can also name an object by the URL of its service.
    private func mayShareOrigin(with source: SourceURL) -> Bool {
        guard let address = root.address else { return source.address == nil }
        return source.address.map(address.isSameOrigin) ?? false
    }
}
