internal import Glibc
internal import Synchronization
package import SystemIO

/// A rendition's open file and its record. Immutable and shared by all responses.
package final class StoredObject: Sendable {
    package let record: ObjectRecord
    /// The open file. Read it by position only. It stays valid after the rendition is evicted or purged.
    package let descriptor: SharedDescriptor
    /// Its position in the eviction queue; 0 if it is not stored.
    let sequence: Int64
    /// The file, open for writing, if it is in memory because the disk refused it.
    package let memory: SharedDescriptor?
    /// The number of responses that used it since its file was opened.
    fileprivate let uses = Atomic<Int>(0)
    /// The lap of the eviction hand in which a use was last reported.
    private let reportedLap = Atomic<Int>(-1)

    init(record: ObjectRecord, descriptor: SharedDescriptor, sequence: Int64, memory: SharedDescriptor? = nil) {
        self.memory = memory
        self.record = record
        self.descriptor = descriptor
        self.sequence = sequence
    }

    /// Whether the file has lost its name by eviction or purge.
    var isUnlinked: Bool {
        var status = stat()
        return fstat(descriptor.number, &status) == 0 && status.st_nlink == 0
    }

    /// Returns true once per lap; the caller then reports the use. Two threads may both get true, which is harmless.
    @inline(__always)
    func isFirstUse(inLap lap: Int) -> Bool {
        guard reportedLap.load(ordering: .relaxed) != lap else { return false }
        reportedLap.store(lap, ordering: .relaxed)
        return true
    }
}

/// A stored rendition, as ``Cache/list(of:)`` describes it.
package struct ListedRendition: Sendable {
    /// The canonical text of format and options; empty for an alias of an older version.
    package let rendition: String
    package let object: ObjectRecord
    /// Seconds since the origin's last response.
    package let age: Int64
    package let freshness: Freshness
    /// Responses that used the object, under any URL, while it was in memory.
    package let uses: Int
}

/// A rendition found in the cache or just published: its open file, its record and, if it was found by its source, the alias.
///
/// Immutable except for one slot in which the user of the cache can attach a prepared value. Any thread.
package final class CachedRendition: Sendable {
    package let object: StoredObject
    /// The alias by which it was found or published; nil for a rendition found by its id.
    package let alias: AliasRecord?
    /// The epoch of the lookup or publish: no purge up to that epoch covers it.
    package let epoch: Epoch
    /// The alias's times. Every hit reads them, and copying the alias would retain its strings.
    let aliasTimes: OriginTimes?
    /// The sequence of the alias's row; a newer one has a greater sequence.
    let aliasSequence: Int64
    /// The address of an owned ``Attachment``, or 0. (`AtomicLazyReference` takes 600 instructions per read.)
    private let slot = Atomic<UInt>(0)

    init(object: StoredObject, alias: AliasRecord?, aliasSequence: Int64 = 0, epoch: Epoch) {
        self.object = object
        self.alias = alias
        aliasTimes = alias?.times
        self.aliasSequence = aliasSequence
        self.epoch = epoch
    }

    deinit {
        Self.attachment(at: slot.load(ordering: .acquiring))?.release()
    }

    /// Whether it was found by, or published for, a source. (Reading ``alias`` copies it.)
    package var isOfSource: Bool { aliasTimes != nil }
    /// Whether the origin has limited its lifetime.
    package var isLimitedByOrigin: Bool { aliasTimes?.freshFor != nil }
    /// Seconds by which clients have to ask again earlier than shared caches.
    package var clientReduction: Int64 {
        guard let times = aliasTimes, let whole = times.freshFor, let client = times.clientFreshFor else { return 0 }
        return max(0, whole - client)
    }
    package var objectID: ObjectID { object.record.id }
    package var name: RenditionName { object.record.name }
    package var descriptor: SharedDescriptor { object.descriptor }
    package var length: Int64 { object.record.length }
    package var content: ContentDigest { object.record.content }
    /// The file extension without its dot, such as `mp4`.
    package var fileExtension: String { object.record.fileExtension }
    /// Seconds since 1970.
    package var created: Int64 { object.record.created }
    package var facts: [UInt8] { object.record.facts }

    /// Responses that used it, under any URL, while it was in memory.
    package var uses: Int { object.uses.load(ordering: .relaxed) }

    @inline(__always)
    package func countUse() {
        object.uses.wrappingAdd(1, ordering: .relaxed)
    }

    /// The attached value, or nil. Takes no lock.
    package var attachment: (any AnyObject & Sendable)? {
        Self.attachment(at: slot.load(ordering: .acquiring))?.takeUnretainedValue().value
    }

    /// Attaches `value` unless a value is attached already.
    ///
    /// The value lives as long as this object: until eviction, purge, renewal or displacement from the hot table.
    ///
    /// - Returns: The value that was attached first.
    @discardableResult
    package func attach(_ value: any AnyObject & Sendable) -> any AnyObject & Sendable {
        let new = Unmanaged.passRetained(Attachment(value))
        let (isFirst, known) = slot.compareExchange(
            expected: 0, desired: UInt(bitPattern: new.toOpaque()), ordering: .acquiringAndReleasing)
        guard !isFirst, let first = Self.attachment(at: known) else { return value }
        new.release()
        return first.takeUnretainedValue().value
    }

    private static func attachment(at address: UInt) -> Unmanaged<Attachment>? {
        UnsafeRawPointer(bitPattern: address).map { Unmanaged.fromOpaque($0) }
    }

    private final class Attachment: Sendable {
        let value: any AnyObject & Sendable

        init(_ value: any AnyObject & Sendable) {
            self.value = value
        }
    }
}
