/// The places where another thread may come in between: between the steps of a change, outside any lock.
///
/// A test has threads take turns at them, so that every order can be tried on purpose.
enum Step: Sendable, CaseIterable {
    case lookupNotedEpoch, lookupReadIndex, lookupOpenedFile
    case publishMeasured, publishSynced, publishCommitted
    case purgeInForce, purgeCooled
    case evictedFromDisk
}
