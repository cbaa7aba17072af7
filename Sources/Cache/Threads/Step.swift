/// Points between the steps of an operation, outside any lock, at which another thread may run. A test makes threads take turns
/// at them and so tries every order.
enum Step: Sendable, CaseIterable {
    case lookupNotedEpoch, lookupReadIndex, lookupOpenedFile
    case publishMeasured, publishSynced, publishCommitted
    case purgeInForce, purgeCooled
    case evictedFromDisk
}
