internal import CLinux
internal import Glibc
package import SystemIO

/// A rendition that is being published.
struct PublishJob: Sendable {
    var staged: StagedFile
    let id: ObjectID
    let fileExtension: String
    let facts: [UInt8]
    let alias: AliasRecord?
    /// Seconds since 1970 at which another node published it.
    var created: Int64?
    let epoch: Epoch
    var storing = true

    /// Reads the whole staged file and returns its record.
    func measure(now: Int64) throws(CacheError) -> ObjectRecord {
        let (content, length) = try translating(try ContentDigest.measure(staged.descriptor)) { (error: SystemError) in
            CacheError.stagedFileUnusable(reason: error.description)
        }
        guard length > 0 else { throw .stagedFileUnusable(reason: "it is empty") }
        return ObjectRecord(
            id: id, fileExtension: fileExtension, length: Int64(length), content: content,
            created: min(now, created ?? now), facts: facts)
    }

    /// Makes the bytes durable, and returns why that failed. Must be called before the file is named, so that no name ever
    /// leads to an incomplete file.
    func sync() -> UnstoredReason? {
        do throws(SystemError) {
            try retryingOnInterrupt("fdatasync") { fdatasync(staged.number) }
            return nil
        } catch {
            return UnstoredReason(error)
        }
    }

    /// The same file, open for reading only; the staged descriptor if it cannot be opened again.
    func readOnly() -> SharedDescriptor {
        let number = clinux_openat(AT_FDCWD, "/proc/self/fd/\(staged.number)", O_RDONLY, 0)
        return number >= 0 ? SharedDescriptor(OwnedDescriptor(taking: number)) : staged.descriptor
    }
}

/// A rendition that became part of the cache.
struct CommittedObject: Sendable {
    let row: ObjectRow
    /// The sequence of its alias; 0 after an upload.
    let aliasSequence: Int64
    /// False if the object was stored already.
    let isNew: Bool
}

extension UnstoredReason {
    /// The reason that corresponds to an error of the cache's file system.
    package init(_ error: SystemError) {
        switch error.code {
        case ENOSPC, EDQUOT, EFBIG: self = .diskFull
        case EROFS, EACCES, EPERM: self = .readOnly
        case ENOENT, ESTALE, ENOTDIR, EXDEV: self = .directoryLost
        default: self = .failed(error)
        }
    }

    init(_ error: LedgerError) {
        switch error.kind {
        case .fullDisk: self = .diskFull
        case .readOnly: self = .readOnly
        case .closed: self = .unavailable
        case .damage, .failure: self = .failed(SystemError("ledger", code: EIO))
        }
    }
}
