package import Fetch
package import Media
package import Store
package import SystemIO

/// An animation in memory from which renditions are produced.
package struct SourceFile: Sendable {
    /// The whole file, sealed against changes.
    package let bytes: SharedDescriptor
    /// Bytes in the file.
    package let count: Int
    package let digest: SourceDigest
    /// Nil for an upload.
    let origin: Origin?

    /// The origin of a fetched source: its URL, and the values for the next conditional request.
    package struct Origin: Sendable {
        let url: SourceURL
        let validators: Validators
        /// By ``TimeSource/steadySeconds``.
        let fetchedAt: Int64
    }

    /// The format according to the first bytes; GIF if they match none.
    package var format: SourceFormat { OriginalFile.format(bytes) }

    package init(bytes: SharedDescriptor, count: Int, digest: SourceDigest, origin: Origin? = nil) {
        (self.bytes, self.count, self.digest, self.origin) = (bytes, count, digest, origin)
    }

    /// The alias of a rendition of this source; nil for an upload, which has no URL.
    ///
    /// - Parameter storage: The lifetime that the origin gave.
    func alias(of rendition: Rendition, _ storage: StoragePermission) -> AliasRecord? {
        origin.map { origin in
            AliasRecord(
                key: AliasKey(origin.url, rendition), sourceURL: origin.url.canonical,
                rendition: rendition.canonicalText, validators: origin.validators,
                times: OriginTimes(
                    fetchedAt: origin.fetchedAt, freshFor: storage.freshFor, clientFreshFor: storage.clientFreshFor,
                    mustRevalidate: storage.mustRevalidate))
        }
    }
}

/// A fetched source, shared by all renditions that are being produced from it. Immutable.
final class LoadedSource: Sendable {
    let source: SourceFile
    let url: SourceURL
    /// Noted before the origin was asked.
    let epoch: Epoch
    let storage: StoragePermission
    let time: Duration
    /// The bytes, for requests that follow them.
    let arriving: ArrivingSource

    init(
        _ fetched: FetchedSource, digest: SourceDigest, of url: SourceURL, epoch: Epoch, at time: Int64,
        _ rules: OriginRules, _ arriving: ArrivingSource
    ) {
        source = SourceFile(
            bytes: fetched.bytes, count: fetched.count, digest: digest,
            origin: SourceFile.Origin(url: url, validators: Validators(fetched.validators), fetchedAt: time))
        self.url = url
        self.epoch = epoch
        storage = rules.permission(for: url, fetched.cacheDirectives)
        self.time = fetched.duration
        self.arriving = arriving
    }
}

// MARK: - Validators of the cache and of a fetch

extension Validators {
    /// Validators that `Fetch` has checked.
    init(_ fetched: SourceValidators) {
        self.init(etag: fetched.etag, lastModified: fetched.lastModified)
    }
}

extension SourceValidators {
    /// The stored validators for a conditional request; none for an unknown source.
    init(_ stored: Validators?) {
        self.init(etag: stored?.etag, lastModified: stored?.lastModified)
    }
}

/// The file of a source that is sent unchanged.
package enum OriginalFile {
    /// The bytes that distinguish all formats, unless a long box precedes the brands of a clip.
    private static let headLength = ContentSniffer.sufficient

    /// The format according to the first bytes; GIF if they match none.
    package static func format(_ file: SharedDescriptor) -> SourceFormat {
        withHead(of: file) { SourceFormat(of: $0) ?? .gif }
    }

    /// The media type according to the first bytes. A still image may be a JPEG.
    package static func mediaType(_ file: SharedDescriptor) -> String {
        image(file) == .jpeg ? Rendition.Format.jpg.contentType : format(file).mediaType
    }

    /// The extensions of files of this type, the usual one first.
    package static func fileExtensions(_ file: SharedDescriptor) -> [String] {
        image(file) == .jpeg ? Rendition.Format.jpg.fileExtensions : format(file).fileExtensions
    }

    /// The kind of a still image; nil if the first bytes do not tell that it is one.
    package static func image(_ file: SharedDescriptor) -> ContentKind? {
        withHead(of: file) { head in
            guard case .notAnAnimation(let kind) = ContentSniffer.judge(head, isWhole: true), kind.isShownAsImage else {
                return nil
            }
            return kind
        }
    }

    private static func withHead<Result>(of file: SharedDescriptor, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        withUnsafeTemporaryAllocation(byteCount: headLength, alignment: 8) { head in
            let count = (try? file.read(into: head, at: 0)) ?? 0
            return body(UnsafeRawBufferPointer(rebasing: head[..<count]))
        }
    }
}
