internal import Synchronization
package import SystemIO

/// A rendition found in the cache or just published: its open file, what is known of it, and, where it was found by its
/// source, the alias.
///
/// Immutable but for one slot in which the owner may leave what it prepared for it. Any thread.
package final class CachedRendition: Sendable {
    package let object: StoredObject
    /// The alias it was found by or published under; nil for a rendition found by its id.
    package let alias: AliasRecord?
    /// The epoch in which it was looked up or published: no purge up to then concerns it.
    package let epoch: Epoch
    /// The alias's times: beside it, because every hit asks for them, and copying the alias counts references to its texts.
    let aliasTimes: (fetchedAt: Int64, freshFor: Int64?)?
    /// Of the alias's line in the journal; a newer line has a greater one.
    let aliasSequence: Int64
    /// The address of an ``Attachment`` that is owned, or 0. (`AtomicLazyReference` takes 600 instructions a look.)
    private let slot = Atomic<UInt>(0)

    init(object: StoredObject, alias: AliasRecord?, aliasSequence: Int64 = 0, epoch: Epoch) {
        self.object = object
        self.alias = alias
        aliasTimes = alias.map { ($0.fetchedAt, $0.freshFor) }
        self.aliasSequence = aliasSequence
        self.epoch = epoch
    }

    deinit {
        Self.attachment(at: slot.load(ordering: .acquiring))?.release()
    }

    /// Whether it was found by a source or published for one. (To ask for ``alias`` copies it.)
    package var isOfSource: Bool { aliasTimes != nil }
    package var objectID: ObjectID { object.record.id }
    package var descriptor: SharedDescriptor { object.descriptor }
    /// Bytes.
    package var length: Int64 { object.record.length }
    /// SHA-256 of the bytes.
    package var content: ContentDigest { object.record.content }
    /// Without its dot, such as `mp4`.
    package var fileExtension: String { object.record.fileExtension }
    /// Seconds since 1970.
    package var created: Int64 { object.record.created }
    /// What the publisher gave.
    package var facts: [UInt8] { object.record.facts }

    /// What was left in the slot, or nil. No lock.
    package var attachment: (any AnyObject & Sendable)? {
        Self.attachment(at: slot.load(ordering: .acquiring))?.takeUnretainedValue().value
    }

    /// Leaves `value` in the slot, unless something is there already.
    ///
    /// The slot lives as long as this object: until eviction, purge, renewal or the hot table lets go of it.
    ///
    /// - Returns: What is in the slot now: the first that was left.
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
