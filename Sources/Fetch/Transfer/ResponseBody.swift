internal import Digests
internal import SystemIO

/// A complete body that begins like an animation.
struct FetchedBody {
    let bytes: SharedDescriptor
    let count: Int
    let sha256: [UInt8]
}

/// The receiver of a source's body: it recognizes, counts, hashes and stores the bytes.
///
/// The memory file is created once the first bytes are recognized, so that responses of other kinds need none.
struct BodySink: ~Copyable {
    private let limit: Int
    private let acceptsImages: Bool
    private var start: [UInt8] = []
    private var hash = SHA256()
    private var file: MemoryFile?
    private var reader: SharedDescriptor?
    /// The number of bytes in the file.
    private var count = 0

    /// The part of a recognized body that has arrived.
    struct Arrived {
        let file: SharedDescriptor
        /// The number of bytes in the file.
        let count: Int
        /// Whether no earlier part was returned.
        let isFirst: Bool
    }

    /// - Parameters:
    ///   - limit: The largest body, in bytes.
    ///   - acceptsImages: See ``ArrivingSource/acceptsImages``.
    init(limit: Int, acceptsImages: Bool) {
        self.limit = limit
        self.acceptsImages = acceptsImages
    }

    /// Appends a part of the body; returns nil if recognition needs more bytes. Must not be called after an error.
    mutating func append(_ bytes: UnsafeRawBufferPointer) throws(FetchError) -> Arrived? {
        if let reader {
            try store(bytes)
            return Arrived(file: reader, count: count, isFirst: false)
        }
        let known = start.count
        start.append(contentsOf: bytes.prefix(ContentSniffer.sufficient - known))
        switch ContentSniffer.judge(start, isWhole: false) {
        case .undecided:
            // `start` contains all bytes so far, because more bytes would have sufficed for a decision.
            return nil
        case .notAnAnimation(let kind) where !acceptsImages || !kind.isShownAsImage:
            throw .notAnAnimation(looksLike: kind)
        case .notAnAnimation, .source:
            let opened: SharedDescriptor
            do throws(SystemError) {
                let file = try MemoryFile(name: "gifreel-source")
                opened = file.reader
                self.file = consume file
            } catch {
                throw .exhausted(cause: error.description)
            }
            reader = opened
            let first = start.prefix(known)
            try first.span.bytes.withUnsafeBytes { bytes throws(FetchError) in try store(bytes) }
            try store(bytes)
            return Arrived(file: opened, count: count, isFirst: true)
        }
    }

    /// Seals and returns the complete body.
    consuming func finish() throws(FetchError) -> FetchedBody {
        guard let file = consume file else {
            guard case .notAnAnimation(let kind) = ContentSniffer.judge(start, isWhole: true), !kind.isShownAsImage else {
                // An animation whose file is still being written may begin like this, too.
                throw .failed(.cutShort(cause: "an image ends within its head"))
            }
            throw .notAnAnimation(looksLike: kind)
        }
        do throws(SystemError) {
            return FetchedBody(bytes: try file.seal(), count: count, sha256: hash.finalize())
        } catch {
            throw .exhausted(cause: error.description)
        }
    }

    private mutating func store(_ bytes: UnsafeRawBufferPointer) throws(FetchError) {
        guard count + bytes.count <= limit else { throw .tooLarge(limit: limit, declared: nil) }
        do throws(SystemError) {
            try file?.append(bytes)
        } catch {
            throw .exhausted(cause: error.description)
        }
        hash.update(bytes)
        count += bytes.count
    }
}
