internal import Glibc
internal import SystemIO

/// A file of which parts are read, each within bounds that are checked.
struct OutputBytes {
    private let file: SharedDescriptor
    let count: Int

    init(_ file: SharedDescriptor) throws(OutputFlaw) {
        self.file = file
        do throws(SystemError) {
            count = try file.size()
        } catch {
            throw .unreadable
        }
    }

    /// Reads a part. Its end is known to lie in the file, so `range` may not be larger than the caller wants to hold.
    func read(_ range: Range<Int>) throws(OutputFlaw) -> ByteReader {
        guard range.lowerBound >= 0, range.upperBound <= count else { throw .malformed }
        var bytes = [UInt8](repeating: 0, count: range.count)
        var read = 0
        while read < bytes.count {
            let got = bytes.withUnsafeMutableBytes { buffer in
                pread(file.number, buffer.baseAddress.map { $0 + read }, buffer.count - read, off_t(range.lowerBound + read))
            }
            if got < 0 && errno == EINTR { continue }
            guard got > 0 else { throw .unreadable }
            read += got
        }
        return ByteReader(bytes[...])
    }
}
