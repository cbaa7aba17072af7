internal import CLinux
internal import Glibc
internal import SystemIO

/// A rendition on its way into the store.
struct PublishJob: Sendable {
    let staged: StagedFile
    let id: ObjectID
    let fileExtension: String
    let facts: [UInt8]
    let alias: AliasRecord?
    let epoch: Epoch
    var storing = true

    /// Reads the staged file through and makes its record.
    func measure(now: Int64) throws(CacheError) -> ObjectRecord {
        let content: ContentDigest
        let length: Int
        do throws(SystemError) {
            (content, length) = try ContentDigest.measure(staged.descriptor)
        } catch {
            throw .stagedFileUnusable(reason: error.description)
        }
        guard length > 0 else { throw .stagedFileUnusable(reason: "it is empty") }
        return ObjectRecord(
            id: id, fileExtension: fileExtension, length: Int64(length), content: content, created: now, facts: facts)
    }

    /// Makes the bytes durable. Before the file gets its name, so that no name ever leads to half a file.
    func sync() throws(UnstoredFailure) {
        let number = staged.number
        do throws(SystemError) {
            try retryingOnInterrupt("fdatasync") { fdatasync(number) }
        } catch {
            throw UnstoredFailure(UnstoredReason(error))
        }
    }

    /// The same file, open for reading only, to be served from; where that cannot be had, as it was staged.
    func readOnly() -> SharedDescriptor {
        let number = clinux_openat(AT_FDCWD, "/proc/self/fd/\(staged.number)", O_RDONLY, 0)
        return number >= 0 ? SharedDescriptor(OwnedDescriptor(taking: number)) : staged.descriptor
    }
}

/// Why a rendition cannot be stored, on its way to the publisher.
struct UnstoredFailure: Error {
    let reason: UnstoredReason

    init(_ reason: UnstoredReason) {
        self.reason = reason
    }
}
