internal import CLinux
internal import Glibc
package import SystemIO

/// Staging what is a rendition already.
extension Cache {
    /// A staged file with the bytes of another one, copied on a thread of the cache.
    ///
    /// - Parameters:
    ///   - file: Nobody changes it.
    ///   - count: Its bytes.
    /// - Throws: ``CacheError/stagingFailed(_:)`` where neither disk nor memory takes them, ``CacheError/closed`` where no
    ///   thread is left to copy them.
    package func stage(copyOf file: SharedDescriptor, count: Int) async throws(CacheError) -> StagedFile {
        let result = await publishers.run { () -> Result<StagedFile, CacheError> in
            do throws(CacheError) {
                return .success(try self.copy(file, count))
            } catch {
                return .failure(error)
            }
        }
        guard let result else { throw .closed }
        return try result.get()
    }

    private func copy(_ file: SharedDescriptor, _ count: Int) throws(CacheError) -> StagedFile {
        let staged = try stage(expecting: Int64(count))
        do throws(SystemError) {
            try Self.copy(file, count, to: staged.descriptor)
            return staged
        } catch {
            // The disk filled up meanwhile: memory may still take it.
            guard error.code == ENOSPC, !staged.isInMemory else { throw .stagingFailed(error) }
        }
        let memory = try stageInMemory()
        do throws(SystemError) {
            try Self.copy(file, count, to: memory.descriptor)
        } catch {
            throw .stagingFailed(error)
        }
        return memory
    }

    private static func copy(_ file: SharedDescriptor, _ count: Int, to target: SharedDescriptor) throws(SystemError) {
        var offset: Int64 = 0
        while offset < count {
            let sent = try retryingOnInterrupt("sendfile") {
                clinux_sendfile(target.number, file.number, &offset, count - Int(offset))
            }
            guard sent > 0 else { throw SystemError("sendfile", code: EIO) }
        }
    }
}
