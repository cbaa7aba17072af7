internal import Crypto
internal import SystemIO

/// A whole body that begins with the signature of a GIF.
struct FetchedBody {
    let bytes: SharedDescriptor
    let count: Int
    let sha256: [UInt8]
}

/// Receives the body of a source: judges its first bytes, counts, hashes and stores it in memory.
///
/// The memory file is created only after the first bytes have been recognised, so that responses of other kinds cost nothing.
struct BodySink: ~Copyable {
    private let limit: Int
    private var start: [UInt8] = []
    private var hash = SHA256()
    private var file: MemoryFile?

    /// - Parameter limit: The largest body, in bytes.
    init(limit: Int) {
        self.limit = limit
    }

    /// Appends a part of the body. Must not be called after an error.
    mutating func append(_ bytes: UnsafeRawBufferPointer) throws(FetchError) {
        guard file == nil else { return try keep(bytes) }
        let known = start.count
        start.append(contentsOf: bytes.prefix(ContentSniffer.sufficient - known))
        switch ContentSniffer.judge(start, isWhole: false) {
        case .undecided:
            // All bytes so far are in `start`, since more than that would have been decided.
            return
        case .notAGIF(let kind):
            throw .notAGIF(looksLike: kind)
        case .gif:
            do throws(SystemError) {
                file = try MemoryFile(name: "gifreel-source")
            } catch {
                throw .exhausted(cause: error.description)
            }
            try keepStart(upTo: known)
            try keep(bytes)
        }
    }

    /// Seals and returns the whole body.
    consuming func finish() throws(FetchError) -> FetchedBody {
        guard let file = consume file else {
            guard case .notAGIF(let kind) = ContentSniffer.judge(start, isWhole: true) else {
                throw .notAGIF(looksLike: .unknown)
            }
            throw .notAGIF(looksLike: kind)
        }
        let count = file.count
        do throws(SystemError) {
            return FetchedBody(bytes: try file.seal(), count: count, sha256: Array(hash.finalize()))
        } catch {
            throw .exhausted(cause: error.description)
        }
    }

    private mutating func keepStart(upTo count: Int) throws(FetchError) {
        var failure: FetchError?
        start.withUnsafeBytes { bytes in
            do throws(FetchError) { try keep(UnsafeRawBufferPointer(rebasing: bytes[..<count])) } catch { failure = error }
        }
        if let failure { throw failure }
    }

    private mutating func keep(_ bytes: UnsafeRawBufferPointer) throws(FetchError) {
        let count = (file?.count ?? 0) + bytes.count
        guard count <= limit else { throw .tooLarge(limit: limit, declared: nil) }
        do throws(SystemError) {
            try file?.append(bytes)
        } catch {
            throw .exhausted(cause: error.description)
        }
        hash.update(bufferPointer: bytes)
    }
}
