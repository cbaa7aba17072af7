internal import CLinux
internal import Glibc
internal import SystemIO

/// A rendition that is being published.
struct PublishJob: Sendable {
    let staged: StagedFile
    let id: ObjectID
    let fileExtension: String
    let facts: [UInt8]
    let alias: AliasRecord?
    let epoch: Epoch
    var storing = true

    /// Reads the whole staged file and returns its record.
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

    /// Makes the bytes durable. Must come before the file gets its name, so that no name ever leads to half a file.
    func sync() throws(UnstoredReason) {
        let number = staged.number
        do throws(SystemError) {
            try retryingOnInterrupt("fdatasync") { fdatasync(number) }
        } catch {
            throw UnstoredReason(error)
        }
    }

    /// The same file, open for reading only; the staged descriptor if it cannot be opened again.
    func readOnly() -> SharedDescriptor {
        let number = clinux_openat(AT_FDCWD, "/proc/self/fd/\(staged.number)", O_RDONLY, 0)
        return number >= 0 ? SharedDescriptor(OwnedDescriptor(taking: number)) : staged.descriptor
    }

    /// How the object will be found: by the alias of its source, or, after an upload, by its id.
    var reference: JournalEntry { alias.map { .alias($0, id) } ?? .upload(id) }
}

/// A rendition that became part of the cache.
struct CommittedObject: Sendable {
    let row: ObjectRow
    /// The sequence of the line that records its alias or its upload.
    let referenceSequence: Int64
    /// False if the object was stored already.
    let isNew: Bool
}

extension UnstoredReason {
    init(_ error: SystemError) {
        switch error.code {
        case ENOSPC, EDQUOT, EFBIG: self = .diskFull
        case EROFS, EACCES, EPERM: self = .readOnly
        case ENOENT, ESTALE, ENOTDIR, EXDEV: self = .directoryLost
        default: self = .failed(error)
        }
    }
}
